/**
 * `requestBodies` is a Fastify plugin that reads request bodies as bytes, and bounds their memory.
 *
 * Bodies stay in memory until the response closes, because a retry on another provider sends the body again. There are three separate
 * memory budgets: for accounts with a balance, for other accounts, and for requests without an account. Unpaid requests thus cannot
 * displace paid ones.
 */

import type { ErrorCode } from '@inference/formats';
import type { FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { type Claim, FairBudget } from '../../limits/fair-budget.js';
import { networkOf } from '../../limits/network-address.js';
import { BodyReader, bodyError, type Done, discardRest, type Encoding } from './body-reader.js';

declare module 'fastify' {
  interface FastifyInstance {
    readonly requestBodies: RequestBodies;
  }
  interface FastifyRequest {
    /** Claim on the memory budget, released when the response closes. Null if no body was read or the budget had no room. */
    bodyClaim: Claim | null;
    /** True once the response is sent or the connection is closed. */
    isClosed: boolean;
  }
}

export interface RequestBodiesOptions {
  /** Maximum bytes of all bodies of accounts with a balance together. */
  readonly maxHeldBytes: number;
  readonly maxRequestBytes: number;
  /** Maximum bytes of a body on routes that accept images, at most `maxHeldBytes`. Default: `maxRequestBytes`. */
  readonly maxVisionRequestBytes?: number | undefined;
  /** Whether an account has a balance; null: unknown, treated as without one. Must not reject. */
  readonly isFunded: (accountId: string) => boolean | null | Promise<boolean | null>;
  /** Time within which a minimum of bytes must arrive; see `BodyReader`. */
  readonly bodyWindowMs?: number | undefined;
}

const WINDOW_MS = 10_000;
const MAX_UNAUTHENTICATED_BYTES = 16 * 2 ** 20;
const MAX_UNAUTHENTICATED_BODY_BYTES = 512 * 1024;
/** Estimated memory of a connection and its request, besides the bytes of the body. */
const BYTES_PER_UNAUTHENTICATED_REQUEST = 4096;

/** Replaces Fastify's body parsers. */
export const requestBodies = fastifyPlugin<RequestBodiesOptions>(async (server, options) => {
  const bodies = new RequestBodies(options);
  server.decorate('requestBodies', bodies);
  server.decorateRequest('bodyClaim', null);
  server.decorateRequest('isClosed', false);
  server.addHook('onRequest', (request, reply, done) => {
    reply.raw.once('close', () => {
      request.isClosed = true;
      request.bodyClaim?.release();
    });
    done();
  });
  server.removeAllContentTypeParsers();
  server.addContentTypeParser('*', (request, payload, done: Done) => bodies.read(request, payload, done));
});

class RequestBodies {
  readonly #options: RequestBodiesOptions;
  readonly #funded: FairBudget;
  readonly #unfunded: FairBudget;
  readonly #unauthenticated = new FairBudget({
    maxBytes: MAX_UNAUTHENTICATED_BYTES,
    freeMultiple: 1,
    bytesPerClaim: BYTES_PER_UNAUTHENTICATED_REQUEST,
    evictsOwn: true,
  });

  readonly maxVisionBytes: number;

  #overloadedCount = 0;

  constructor(options: RequestBodiesOptions) {
    this.#options = options;
    const { maxHeldBytes, maxRequestBytes } = options;
    this.maxVisionBytes = Math.max(maxRequestBytes, Math.min(maxHeldBytes, options.maxVisionRequestBytes ?? 0));
    // A lone account may use nine tenths of the first budget, or half of the second.
    this.#funded = new FairBudget({ maxBytes: maxHeldBytes, freeMultiple: 9 });
    this.#unfunded = new FairBudget({ maxBytes: Math.max(maxHeldBytes / 4, 2 * this.maxVisionBytes), freeMultiple: 1 });
  }

  /** Memory of bodies from accounts, in bytes. */
  get heldBytes(): number {
    return this.#funded.bytes + this.#unfunded.bytes;
  }

  /** Memory of requests without an account, in bytes, including their connections. */
  get unauthenticatedHeldBytes(): number {
    return this.#unauthenticated.bytes;
  }

  /** Number of bodies since the start that a memory budget had no room for, or evicted while they were read. */
  get overloadedCount(): number {
    return this.#overloadedCount;
  }

  /** Maximum of {@link heldBytes}: both budgets of accounts together. */
  get maxHeldBytes(): number {
    return this.#funded.maxBytes + this.#unfunded.maxBytes;
  }

  get maxUnauthenticatedHeldBytes(): number {
    return MAX_UNAUTHENTICATED_BYTES;
  }

  isFunded(accountId: string): boolean | null | Promise<boolean | null> {
    return this.#options.isFunded(accountId);
  }

  read(request: FastifyRequest, payload: NodeJS.ReadableStream, done: Done): void {
    const holder = holderOf(request);
    if (holder === null) {
      this.#readWithin(this.#unauthenticated, { holder: networkOf(request.ip) }, request, payload, done);
      return;
    }
    const claimant = { holder, member: request.apiKey?.id ?? '' };
    const readAs = (isFunded: boolean | null): void =>
      this.#readWithin(isFunded ? this.#funded : this.#unfunded, claimant, request, payload, done);
    const isFunded = request.operator !== null || this.#options.isFunded(holder);
    if (isFunded instanceof Promise) void isFunded.then(readAs);
    else readAs(isFunded);
  }

  #readWithin(
    budget: FairBudget,
    claimant: { readonly holder: string; readonly member?: string },
    request: FastifyRequest,
    payload: NodeJS.ReadableStream,
    done: Done,
  ): void {
    const isUnauthenticated = budget === this.#unauthenticated;
    const maxBytes = isUnauthenticated
      ? Math.min(request.routeOptions.bodyLimit, MAX_UNAUTHENTICATED_BODY_BYTES)
      : request.routeOptions.bodyLimit;
    const encoding = encodingOf(request.headers['content-encoding']);
    const refuse = (code: ErrorCode): void => {
      discardRest(request, payload, maxBytes);
      done(bodyError(code));
    };
    const code = bodyErrorCode(request, encoding, isUnauthenticated, maxBytes);
    if (code !== null) {
      refuse(code);
      return;
    }
    let reader: BodyReader | null = null;
    const claim = budget.open(claimant, () => {
      this.#overloadedCount++;
      reader?.refuse(bodyError('overloaded'));
    });
    request.bodyClaim = claim;
    if (claim === null) {
      this.#overloadedCount++;
      refuse('overloaded');
      return;
    }
    const windowMs = this.#options.bodyWindowMs ?? WINDOW_MS;
    reader = new BodyReader({ request, payload, encoding, maxBytes, claim, windowMs, done });
    reader.start();
  }
}

/** Account or operator that a guard admitted, if any. */
function holderOf(request: FastifyRequest): string | null {
  return request.apiKey?.accountId ?? request.sessionAccountId ?? request.operator;
}

/** Error code that refuses a body before reading, or null if the body may be read. */
function bodyErrorCode(request: FastifyRequest, encoding: Encoding, isUnauthenticated: boolean, maxBytes: number): ErrorCode | null {
  // Nobody receives this error.
  if (request.isClosed) return 'invalid_request';
  // Bodies without an account are small, and inflating them would cost memory.
  if (encoding !== 'none' && isUnauthenticated) return 'body_encoded';
  if (encoding === 'unknown') return 'encoding_unsupported';
  return Number(request.headers['content-length']) > maxBytes ? 'body_too_large' : null;
}

/** Compression of a body by the header `content-encoding` (RFC 9110 section 8.4). */
function encodingOf(contentEncoding: string | undefined): Encoding {
  const codings = (contentEncoding ?? '')
    .toLowerCase()
    .split(',')
    .map((coding) => coding.trim())
    .filter((coding) => coding !== '' && coding !== 'identity');
  const [coding] = codings;
  if (coding === undefined) return 'none';
  if (codings.length > 1) return 'unknown';
  if (coding === 'gzip' || coding === 'x-gzip') return 'gzip';
  return coding === 'deflate' ? 'deflate' : 'unknown';
}

const NO_BODY = new Uint8Array(0);

/** Empty without a body. */
export function bytesOf(request: FastifyRequest): Uint8Array {
  return request.body instanceof Uint8Array ? request.body : NO_BODY;
}
