/** Sends an error in its public shape through the framework. */
import type { HttpError } from '@inference/formats';
import type { FastifyReply } from 'fastify';

export function sendError(reply: FastifyReply, error: HttpError): void {
  reply.code(error.status).headers(error.headers).send(error.body);
}
