/**
 * `createHttpServer` creates the Fastify server with its plugins, but without routes. Handlers receive bodies as bytes. Errors have the
 * format of the request path.
 */

import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { apiError, openAiError, RequestError } from '@inference/formats';
import { type FastifyInstance, type FastifyReply, fastify } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { newRequestId } from '../../inference/request/job-id.js';
import { cors } from './cors.js';
import { type ErrorHandlingOptions, errorHandling } from './errors.js';
import { type RequestBodiesOptions, requestBodies } from './request-bodies.js';
import { normalizeUrl } from './request-path.js';
import { useDocumentationSchemas } from './route-schemas.js';
import { sendError } from './send-error.js';

interface HttpServerOptions extends ErrorHandlingOptions, RequestBodiesOptions {
  /** Addresses and ranges (CIDR) of proxies whose forwarding headers are trusted. */
  readonly trustedProxies: readonly string[];
  /** Maximum time for a client to send its request, in milliseconds. */
  readonly requestMs?: number | undefined;
  /** Whether pages of other sites may call the API with a key. */
  readonly cors: boolean;
  /** Milliseconds since 1970, for request ids. */
  readonly now: () => number;
}

const REQUEST_MS = 120_000;
/** Maximum part of {@link REQUEST_MS} for the headers. */
const HEADERS_MS = 60_000;

export async function createHttpServer(options: HttpServerOptions): Promise<FastifyInstance> {
  const { requestMs = REQUEST_MS, now } = options;
  const server = fastify({
    logger: false,
    bodyLimit: options.maxRequestBytes,
    trustProxy: options.trustedProxies.length === 0 ? false : [...options.trustedProxies],
    requestTimeout: requestMs,
    // Node.js checks both timeouts only once per checking interval. With `requireHostHeader`, Node.js itself would answer requests without
    // `Host`, with an empty body.
    http: {
      headersTimeout: Math.min(HEADERS_MS, requestMs),
      connectionsCheckingInterval: Math.ceil(requestMs / 8),
      requireHostHeader: false,
    },
    // Instead, `errorHandling` refuses requests during the shutdown, and `ResponseDrain` ends connections.
    return503OnClosing: false,
    forceCloseConnections: false,
    routerOptions: { maxParamLength: 512 },
    rewriteUrl: ({ url = '/' }) => normalizeUrl(url),
    // Called for requests that reach no route, because their URL is invalid.
    frameworkErrors: (_error, _request, reply) => {
      setRequestIdHeaders(reply);
      sendError(reply, apiError('invalid_request'));
    },
    clientErrorHandler: (error, socket) => answerMalformedRequest(error, socket, newRequestId(now())),
    genReqId: () => newRequestId(now()),
  });
  closePipelined(server.server);
  // Unknown expectations may be ignored (RFC 9110 section 10.1.1). Node.js would answer 417 with an empty body.
  server.server.on('checkExpectation', (request, response) => server.server.emit('request', request, response));
  useDocumentationSchemas(server);
  await server.register(requestBodies, options);
  server.addHook('onRequest', (request, reply, done) => {
    setRequestIdHeaders(reply);
    // The API accepts JSON with any Content-Type, even an invalid one. Routes with cookies require the right Content-Type, which
    // distinguishes requests of the console from HTML forms on other sites.
    const hasBody = request.method === 'POST' || request.method === 'PUT';
    if (hasBody && !requiresContentType(request.url)) request.headers['content-type'] = 'application/json';
    // RFC 9112 section 3.2.
    const lacksHost = request.headers.host === undefined && request.raw.httpVersion !== '1.0';
    done(lacksHost ? new RequestError('invalid_request', 'Host', 'The request must have the header Host.') : undefined);
  });
  await server.register(routeMethods);
  if (options.cors) await server.register(cors);
  await server.register(errorHandling, options);
  server.addHook('preHandler', (request, _reply, done) => {
    // No identifier contains NUL, the only character that PostgreSQL does not store in text.
    if (!request.url.includes('%00')) return done();
    done(new RequestError('invalid_request', null, 'The address must not hold the character NUL (%00).'));
  });
  return server;
}

/** Paths that accept cookies, forms (RFC 6749) or a sealed request. */
function requiresContentType(url: string): boolean {
  return url.startsWith('/v1/e2e/') || url.startsWith('/console/') || url.startsWith('/admin/') || url.startsWith('/oauth/');
}

function requestIdHeaders(id: string): Readonly<Record<string, string>> {
  return { 'x-request-id': id, 'request-id': id };
}

/** Sets the request id under the header names of OpenAI and Anthropic. */
function setRequestIdHeaders(reply: FastifyReply): void {
  reply.headers(requestIdHeaders(reply.request.id));
}

/** Answers a request that Node.js could not parse or that arrived too slowly, and closes the connection. Fastify never sees the request. */
function answerMalformedRequest(error: Error & { readonly code?: string }, socket: Socket, requestId: string): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const status =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? '431 Request Header Fields Too Large'
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? '408 Request Timeout'
        : '400 Bad Request';
  const { body, headers } = openAiError(apiError('invalid_request', { message: 'The request is not valid HTTP, or it came too slowly.' }));
  const head = [
    `HTTP/1.1 ${status}`,
    `content-type: ${headers['content-type']}`,
    `content-length: ${Buffer.byteLength(body)}`,
    ...Object.entries(requestIdHeaders(requestId)).map(([name, value]) => `${name}: ${value}`),
    'connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}

/**
 * `closePipelined` closes pipelined responses (RFC 9112 section 9.3.2) whose connection closes before their turn.
 *
 * Node.js emits `close` only for the response that currently owns the socket.
 */
function closePipelined(server: Server): void {
  const responsesBySocket = new WeakMap<Socket, Set<ServerResponse>>();
  server.on('request', ({ socket }, response) => {
    // A response without a socket waits for its turn.
    if (response.socket !== null) return;
    const responses = responsesBySocket.get(socket) ?? responsesClosedWith(socket);
    responsesBySocket.set(socket, responses);
    responses.add(response);
    response.once('socket', () => responses.delete(response));
  });
}

function responsesClosedWith(socket: Socket): Set<ServerResponse> {
  const responses = new Set<ServerResponse>();
  socket.once('close', () => {
    for (const response of responses) {
      response.destroy();
      response.emit('close');
    }
  });
  return responses;
}

declare module 'fastify' {
  interface FastifyInstance {
    methodsOf(path: string): ReadonlySet<string>;
  }
  interface FastifyContextConfig {
    /** Whether a path that matches the route's pattern exists. Default: always true. */
    readonly hasPath?: (path: string) => boolean;
  }
}

interface Route {
  readonly url: string;
  readonly methods: readonly string[];
  readonly hasPath: (path: string) => boolean;
}

/**
 * Adds `methodsOf`, which finds the methods that a path has routes for, for 405 responses and preflights. Must be registered before the
 * routes: earlier routes are not found.
 */
const routeMethods = fastifyPlugin(async (server) => {
  const routes: Route[] = [];
  server.addHook('onRoute', ({ url, method, config }) => {
    routes.push({ url, methods: [method].flat(), hasPath: config?.hasPath ?? (() => true) });
  });
  // Compiled on demand, because few requests need the expressions and compiling all would delay the start.
  const patterns = new Map<string, RegExp>();
  const patternOf = (url: string): RegExp => {
    const pattern = patterns.get(url) ?? compilePattern(url);
    patterns.set(url, pattern);
    return pattern;
  };
  server.decorate('methodsOf', (path) => {
    const matching = routes.filter(({ url, hasPath }) => patternOf(url).test(path) && hasPath(path));
    return new Set(matching.flatMap(({ methods }) => methods));
  });
});

function compilePattern(url: string): RegExp {
  const pattern = url
    .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
    .replace(/:[A-Za-z_]+/g, '[^/]+')
    .replace(/\*/g, '.*');
  return new RegExp(`^${pattern}$`);
}
