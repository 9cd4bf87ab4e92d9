/** The body of a request as it came: every route here takes bytes and reads them itself. */
import type { FastifyRequest } from 'fastify';

const NO_BODY = new Uint8Array(0);

/** Empty when the request has no body. */
export function bytesOf(request: FastifyRequest): Uint8Array {
  return request.body instanceof Uint8Array ? request.body : NO_BODY;
}
