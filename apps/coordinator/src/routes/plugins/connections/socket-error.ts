/** `endWithError` writes an error response to the socket of a request that does not reach Fastify, and ends the connection. */
import { STATUS_CODES } from 'node:http';
import type { Writable } from 'node:stream';
import { type ApiError, openAiError } from '@inference/formats';

interface SocketError {
  readonly error: ApiError;
  readonly requestId: string;
  /** Replaces the status of `error`. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

export function endWithError(socket: Writable, { error, requestId, status, headers }: SocketError): void {
  const answer = openAiError(error);
  const { [status ?? answer.status]: reason = '' } = STATUS_CODES;
  const all = {
    ...answer.headers,
    'content-length': String(Buffer.byteLength(answer.body)),
    ...requestIdHeaders(requestId),
    ...headers,
    connection: 'close',
  };
  const lines = [`HTTP/1.1 ${status ?? answer.status} ${reason}`, ...Object.entries(all).map(([name, value]) => `${name}: ${value}`)];
  socket.end(`${lines.join('\r\n')}\r\n\r\n${answer.body}`);
}

/** The request id under the header names of OpenAI and Anthropic. */
export function requestIdHeaders(id: string): Readonly<Record<string, string>> {
  return { 'x-request-id': id, 'request-id': id };
}
