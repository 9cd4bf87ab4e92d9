/** Sends an error through the framework, in the shape that clients of the path called understand. */
import { type ApiError, errorAt } from '@inference/formats';
import type { FastifyReply } from 'fastify';
import { isMessagesClient } from './messages-client.js';

export function sendError(reply: FastifyReply, error: ApiError): void {
  const { request } = reply;
  const { status, headers, body } = errorAt(request.url.split('?', 1)[0] ?? '', error, request.id, isMessagesClient(request));
  reply.code(status).headers(headers).send(body);
}
