/**
 * `createHttpServer` creates the Fastify server with plugins for bodies, CORS and errors, but without routes. Handlers receive bodies as
 * bytes. Errors have the format of the request path.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { apiError, RequestError } from '@inference/formats';
import { type FastifyInstance, type FastifyReply, fastify } from 'fastify';
import { newRequestId } from '../../inference/request/job-id.js';
import { closePipelined } from './connections/pipelined-responses.js';
import { endWithError, requestIdHeaders } from './connections/socket-error.js';
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
  /** Whether pages of other sites may call routes under `/v1`. */
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
    const fault = hostFault(request.raw);
    if (fault !== null) done(new RequestError('invalid_request', 'Host', fault));
    else if (isTransferCodingSupported(request.raw)) done();
    else done(new RequestError('transfer_coding_unsupported', 'Transfer-Encoding', apiError('transfer_coding_unsupported').message));
  });
  await server.register(routeMethods);
  if (options.cors) await server.register(cors);
  await server.register(errorHandling, options);
  server.addHook('preHandler', (request, _reply, done) => {
    // No identifier contains NUL, the only character that PostgreSQL does not store in text.
    if (!request.url.includes('%00')) return done();
    done(new RequestError('invalid_request', null, 'The address must not contain the character NUL (%00).'));
  });
  return server;
}

/** Violation of RFC 9112 section 3.2, or null. Node.js uses the first of several headers, a proxy in front may use another. */
function hostFault({ httpVersion, rawHeaders }: Pick<IncomingMessage, 'httpVersion' | 'rawHeaders'>): string | null {
  const hostCount = rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'host').length;
  if (hostCount > 1) return 'The request must have the header Host only once.';
  return hostCount === 0 && httpVersion !== '1.0' ? 'The request must have the header Host.' : null;
}

/** Whether the body is at most chunked (RFC 9112 section 6.1). Node.js decodes only the last transfer coding, and ignores the others. */
function isTransferCodingSupported({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  const codings = (headers['transfer-encoding'] ?? '').split(',').map((coding) => coding.trim().toLowerCase());
  return codings.every((coding) => coding === '' || coding === 'chunked');
}

/** Paths that accept cookies, forms (RFC 6749) or a sealed request. */
function requiresContentType(url: string): boolean {
  return url.startsWith('/v1/e2e/') || url.startsWith('/console/') || url.startsWith('/admin/') || url.startsWith('/oauth/');
}

function setRequestIdHeaders(reply: FastifyReply): void {
  reply.headers(requestIdHeaders(reply.request.id));
}

function malformedRequestAnswer(code: string | undefined): readonly [status: number, message: string] {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return [431, 'The address and the headers of the request are too large.'];
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return [408, 'The request came too slowly.'];
    default:
      return [400, 'The request is not valid HTTP.'];
  }
}

/** Answers a request that Node.js could not parse or that arrived too slowly, and closes the connection. Fastify never sees the request. */
function answerMalformedRequest(error: Error & { readonly code?: string }, socket: Socket, requestId: string): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, message] = malformedRequestAnswer(error.code);
  endWithError(socket, { error: apiError('invalid_request', { message }), requestId, status });
}
