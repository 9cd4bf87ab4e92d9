/** Responses to errors and to unknown paths, in the error format of the request path. */
import { apiError, RequestError } from '@inference/formats';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { isUnavailable } from '../../database/connection/transaction-retry.js';
import { errorFacts, type Log } from '../../log.js';
import { answerPreflight } from './cors.js';
import { suggestPath } from './request-path.js';
import { databaseUnavailable, sendError } from './send-error.js';

export interface ErrorHandlingOptions {
  readonly log: Log;
  /** Answers preflights of browsers; OPTIONS requests have no route. */
  readonly cors: boolean;
  /** Sends the console's 404 page to browsers; false for other requests. */
  readonly sendNotFoundPage?: (request: FastifyRequest, reply: FastifyReply) => boolean;
}

/** For a server without routes: 405 needs to know every route that follows. */
export const errorHandling = fastifyPlugin<ErrorHandlingOptions>(async (server, { log, cors, sendNotFoundPage }) => {
  const methodsOf = collectMethods(server);

  /** 404, or 405 with `Allow` if the path exists with other methods. */
  const answerUnknown = (request: FastifyRequest, reply: FastifyReply): void => {
    const path = request.url.split('?', 1)[0] ?? '';
    const allowed = methodsOf(path);
    if (allowed.size > 0) {
      reply.header('allow', [...allowed].join(', '));
      sendError(reply, apiError('method_not_allowed'));
      return;
    }
    if (sendNotFoundPage?.(request, reply)) return;
    const suggestion = suggestPath(path, (candidate) => methodsOf(candidate).size > 0);
    const message = `There is nothing at this address. Did you mean ${suggestion}?`;
    sendError(reply, apiError('not_found', suggestion === null ? {} : { message }));
  };

  // Before the body is read, which has no use without a route.
  server.addHook('onRequest', (request, reply, done) => {
    if (!request.is404) return done();
    const path = request.url.split('?', 1)[0] ?? '';
    if (cors && answerPreflight(request, reply, methodsOf(path))) return;
    answerUnknown(request, reply);
  });
  // Reached only by reply.callNotFound() of other handlers.
  server.setNotFoundHandler(answerUnknown);

  server.setErrorHandler((error: Error & { readonly code?: string; readonly statusCode?: number }, request, reply) => {
    if (error instanceof RequestError) {
      // The framework would close the connection of a sending client. Instead, the rest of the body is discarded.
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
});

/** Returns the methods with a route for a path, among the routes added after this call. */
function collectMethods(server: FastifyInstance): (path: string) => ReadonlySet<string> {
  const routes: { readonly path: RegExp; readonly methods: readonly string[] }[] = [];
  server.addHook('onRoute', ({ url, method }) => {
    const pattern = url
      .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
      .replace(/:[A-Za-z_]+/g, '[^/]+')
      .replace(/\*/g, '.*');
    routes.push({ path: new RegExp(`^${pattern}$`), methods: [method].flat() });
  });
  return (path) => new Set(routes.filter((route) => route.path.test(path)).flatMap((route) => route.methods));
}
