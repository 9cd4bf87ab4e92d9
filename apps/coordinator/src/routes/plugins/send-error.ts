/** `sendError` sends an error in the error format of the request path: OpenAI, Anthropic or other. */
import { type ApiError, apiError, errorAt } from '@inference/formats';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { pathOf } from './request-path.js';

/** 503 with `Retry-After`, for a database that did not answer in time. */
export function databaseUnavailable(): ApiError {
  return apiError('overloaded', { message: 'The database did not answer in time. Try again in a moment.' });
}

export function sendError(reply: FastifyReply, error: ApiError): void {
  const { request } = reply;
  const { status, headers, body } = errorAt(pathOf(request), error, request.id, isAnthropicClient(request));
  reply.code(status).headers(headers).send(body);
}

export function isAnthropicClient({ headers }: FastifyRequest): boolean {
  return headers['anthropic-version'] !== undefined;
}
