/** `createHttpServer`: HTTP server without routes. Bodies stay exact bytes; errors have the format of their path. */
import type { Socket } from 'node:net';
import { apiError, openAiError, RequestError } from '@inference/formats';
import { type FastifyInstance, type FastifyReply, fastify } from 'fastify';
import { newRequestId } from '../../inference/request/job-id.js';
import { closePipelined } from './connections/pipelined-responses.js';
import { cors } from './cors.js';
import { type ErrorHandlingOptions, errorHandling } from './errors.js';
import { type RequestBodiesOptions, requestBodies } from './request-bodies.js';
import { normalizeUrl } from './request-path.js';
import { routeMethods } from './route-methods.js';
import { useDocumentationSchemas } from './route-schemas.js';
import { sendError } from './send-error.js';

interface HttpServerOptions extends ErrorHandlingOptions, RequestBodiesOptions {
  /** Addresses and ranges (CIDR) of proxies whose forwarding headers are trusted. */
  readonly trustedProxies: readonly string[];
  /** Maximum time for a client to send its request, in milliseconds. */
  readonly requestMs?: number | undefined;
  /** Pages of other sites may call the API with a key. */
  readonly cors: boolean;
  /** Milliseconds since 1970, for request ids. */
  readonly now: () => number;
}

const REQUEST_MS = 120_000;
/** Part of REQUEST_MS for the headers. */
const HEADERS_MS = 60_000;

export async function createHttpServer(options: HttpServerOptions): Promise<FastifyInstance> {
  const { requestMs = REQUEST_MS, now } = options;
  const server = fastify({
    logger: false,
    bodyLimit: options.maxRequestBytes,
    trustProxy: options.trustedProxies.length === 0 ? false : [...options.trustedProxies],
    requestTimeout: requestMs,
    // Node.js applies the shorter of both timeouts to the headers. The checking interval is how often late requests are detected.
    // Node.js would answer requests without Host with an empty body.
    http: {
      headersTimeout: Math.min(HEADERS_MS, requestMs),
      connectionsCheckingInterval: Math.ceil(requestMs / 8),
      requireHostHeader: false,
    },
    return503OnClosing: false,
    forceCloseConnections: false,
    routerOptions: { maxParamLength: 512 },
    rewriteUrl: ({ url = '/' }) => normalizeUrl(url),
    // Requests that reach no route, because of an invalid URL or syntax.
    frameworkErrors: (_error, _request, reply) => {
      setRequestIdHeaders(reply);
      sendError(reply, apiError('invalid_request'));
    },
    clientErrorHandler: (error, socket) => answerMalformedRequest(error, socket, newRequestId(now())),
    genReqId: () => newRequestId(now()),
  });
  closePipelined(server.server);
  // RFC 9110 section 10.1.1: unknown expectations may be ignored. Node.js would answer 417 with an empty body.
  server.server.on('checkExpectation', (request, response) => server.server.emit('request', request, response));
  useDocumentationSchemas(server);
  await server.register(requestBodies, options);
  server.addHook('onRequest', (request, reply, done) => {
    setRequestIdHeaders(reply);
    // Bodies must be JSON whatever their Content-Type says, and an unreadable Content-Type must not interfere. Where browsers send
    // cookies, the Content-Type distinguishes pages of the console from forms of other sites.
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

/** Sets the request id under both usual names, also on responses outside of the framework. */
function setRequestIdHeaders(reply: FastifyReply): void {
  reply.headers(requestIdHeaders(reply.request.id));
}

/** Answers malformed or slow requests without the framework, and closes the connection. */
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
