/** `errorHandling` is a Fastify plugin that answers failed requests, unknown paths, and requests during a shutdown. */
import { apiError, RequestError } from '@inference/formats';
import type { FastifyReply, FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { isUnavailable } from '../../database/connection/transaction-retry.js';
import { errorFacts, type Log } from '../../log.js';
import { isHealthPath } from '../system/health.js';
import { pathOf, suggestPath } from './request-path.js';
import { databaseUnavailable, sendError } from './send-error.js';

export interface ErrorHandlingOptions {
  readonly log: Log;
  /** Whether the shutdown has begun. Connections then close after their current response. */
  readonly isDraining: () => boolean;
  /** Whether new requests are refused, except health checks. */
  readonly isRefusing: () => boolean;
  /** Sends the console's 404 page to browsers. Returns false for other requests. */
  readonly sendNotFoundPage?: ((request: FastifyRequest, reply: FastifyReply) => boolean) | undefined;
}

export const errorHandling = fastifyPlugin<ErrorHandlingOptions>(
  async (server, { log, isDraining, isRefusing, sendNotFoundPage }) => {
    /** Answers 404, or 405 with `Allow` if the path exists with other methods. */
    const answerUnknown = (request: FastifyRequest, reply: FastifyReply): void => {
      const path = pathOf(request);
      const allowed = server.methodsOf(path);
      if (allowed.size > 0) {
        reply.header('allow', [...allowed].join(', '));
        sendError(reply, apiError('method_not_allowed'));
        return;
      }
      if (sendNotFoundPage?.(request, reply)) return;
      const suggestion = suggestPath(path, (candidate) => server.methodsOf(candidate).size > 0);
      const message = `There is nothing at this address. Did you mean ${suggestion}?`;
      sendError(reply, apiError('not_found', suggestion === null ? {} : { message }));
    };

    // Refuses requests before the body is read.
    server.addHook('onRequest', (request, reply, done) => {
      if (isDraining()) reply.raw.shouldKeepAlive = false;
      if (isRefusing() && !isHealthPath(request.url)) {
        reply.header('connection', 'close');
        sendError(reply, apiError('shutting_down'));
      } else if (request.is404) answerUnknown(request, reply);
      else done();
    });
    // Reached only by reply.callNotFound() of other handlers.
    server.setNotFoundHandler(answerUnknown);

    server.setErrorHandler((error: Error & { readonly code?: string; readonly statusCode?: number }, request, reply) => {
      if (error instanceof RequestError) {
        // After an error of a body parser, Fastify sets `connection: close`. Here, `discardRest` reads the rest of the body instead.
        reply.removeHeader('connection');
        // RFC 9110 section 15.5.9: the server closes the connection after 408.
        if (error.code === 'body_too_slow') reply.header('connection', 'close');
        sendError(reply, error);
      } else if (error.statusCode !== undefined && error.statusCode < 500) sendError(reply, apiError('invalid_request'));
      else if (isUnavailable(error)) {
        log.warn({ request: request.id, error: errorFacts(error) }, 'database unavailable');
        sendError(reply, databaseUnavailable());
      } else {
        log.error({ request: request.id, error: errorFacts(error) }, 'request failed');
        sendError(reply, apiError('internal'));
      }
    });
  },
  { decorators: { fastify: ['methodsOf'] } },
);
