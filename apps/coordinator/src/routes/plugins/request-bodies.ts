/**
 * Reads request bodies as bytes, inflates them, and bounds their memory and minimum rate.
 *
 * Bodies stay in memory until the response, for retries. Funded, unfunded and absent accounts have separate budgets, so unpaid requests
 * cannot displace paid ones.
 */

import type { Transform } from 'node:stream';
import { createGunzip, createInflate } from 'node:zlib';
import { apiError, type ErrorCode, RequestError } from '@inference/formats';
import type { FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { Deadline } from '../../inference/deadline.js';
import { type Claim, FairBudget } from '../../limits/fair-budget.js';
import { networkOf } from '../../limits/network-address.js';

declare module 'fastify' {
  interface FastifyInstance {
    readonly requestBodies: RequestBodies;
  }
  interface FastifyRequest {
    /** Memory claim of the body: null until the body is read, released when the response closes. */
    bodyClaim: Claim | null;
    /** True once the response is complete or the connection is closed. */
    isAnswered: boolean;
  }
}

export interface RequestBodiesOptions {
  /** Maximum bytes of accounts with a balance, together. */
  readonly maxHeldBytes: number;
  readonly maxRequestBytes: number;
  /** Maximum bytes of a body with images. Default: `maxRequestBytes`. */
  readonly maxVisionRequestBytes?: number | undefined;
  /** Whether an account has a balance. Must not reject. */
  readonly isFunded: (accountId: string) => boolean | Promise<boolean>;
  /** Time within which {@link MIN_BYTES_PER_WINDOW} of a body must arrive, in milliseconds. */
  readonly bodyWindowMs?: number | undefined;
}

type Done = (error: Error | null, body?: Buffer) => void;

/** Multiple of the limit up to which a refused body is read and discarded. */
const MAX_DISCARD_FACTOR = 8;
const WINDOW_MS = 10_000;
const MIN_BYTES_PER_WINDOW = 4096;
/** Maximum bytes of requests without an account, all together, and of a single body. */
const MAX_UNAUTHENTICATED_BYTES = 16 * 2 ** 20;
const MAX_UNAUTHENTICATED_BODY_BYTES = 512 * 1024;
/** Estimated cost of a connection with its request, beside the bytes of the body. */
const BYTES_PER_UNAUTHENTICATED_REQUEST = 4096;
/** An inflater's window and buffers. */
const BYTES_PER_INFLATER = 64 * 1024;

/** Reads every body of the server, in place of the framework's parsers. */
export const requestBodies = fastifyPlugin<RequestBodiesOptions>(async (server, options) => {
  const bodies = new RequestBodies(options);
  server.decorate('requestBodies', bodies);
  server.decorateRequest('bodyClaim', null);
  server.decorateRequest('isAnswered', false);
  server.addHook('onRequest', (request, reply, done) => {
    reply.raw.once('close', () => {
      request.isAnswered = true;
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

  /** Body limit of routes whose requests may have images. */
  readonly maxVisionBytes: number;

  #overloadedCount = 0;

  constructor(options: RequestBodiesOptions) {
    this.#options = options;
    const { maxHeldBytes, maxRequestBytes } = options;
    this.maxVisionBytes = Math.max(maxRequestBytes, Math.min(maxHeldBytes, options.maxVisionRequestBytes ?? 0));
    this.#funded = new FairBudget({ maxBytes: maxHeldBytes, freeMultiple: 9 });
    this.#unfunded = new FairBudget({ maxBytes: Math.max(maxHeldBytes / 4, 2 * this.maxVisionBytes), freeMultiple: 1 });
  }

  /** Bytes of accounts in memory now. */
  get heldBytes(): number {
    return this.#funded.bytes + this.#unfunded.bytes;
  }

  /** Bytes of requests without an account in memory now, including their connections. */
  get unauthenticatedHeldBytes(): number {
    return this.#unauthenticated.bytes;
  }

  /** Bodies refused or abandoned for lack of memory since the start. */
  get overloadedCount(): number {
    return this.#overloadedCount;
  }

  get maxHeldBytes(): number {
    return this.#funded.maxBytes + this.#unfunded.maxBytes;
  }

  get maxUnauthenticatedHeldBytes(): number {
    return MAX_UNAUTHENTICATED_BYTES;
  }

  /** Reads a body within the budget of its account, or of requests without an account. */
  read(request: FastifyRequest, payload: NodeJS.ReadableStream, done: Done): void {
    const account = accountIdOf(request);
    if (account === null) {
      this.#readWithin(this.#unauthenticated, { holder: networkOf(request.ip) }, request, payload, done);
      return;
    }
    const claimant = { holder: account, member: request.apiKey?.id ?? '' };
    const readAs = (isFunded: boolean): void =>
      this.#readWithin(isFunded ? this.#funded : this.#unfunded, claimant, request, payload, done);
    const isFunded = request.operator !== null || this.#options.isFunded(account);
    if (typeof isFunded === 'boolean') readAs(isFunded);
    else void isFunded.then(readAs);
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
      done(refusal(code));
    };
    const unread = refusalCode(request, encoding, isUnauthenticated, maxBytes);
    if (unread !== null) {
      refuse(unread);
      return;
    }
    const claim = budget.open(claimant, () => {
      this.#overloadedCount++;
      stop(refusal('overloaded'));
    });
    request.bodyClaim = claim;
    if (claim === null) {
      this.#overloadedCount++;
      refuse('overloaded');
      return;
    }

    const windowMs = this.#options.bodyWindowMs ?? WINDOW_MS;
    const chunks: Buffer[] = [];
    let bytes = 0;
    let isOver = false;
    let inflater: Transform | null = null;
    const stop = (error: RequestError | null): void => {
      if (isOver) return;
      isOver = true;
      pace.clear();
      payload.removeListener('data', arrived);
      payload.removeListener('end', arrivedWhole);
      payload.removeListener('error', broken);
      if (inflater !== null) {
        payload.unpipe(inflater);
        inflater.destroy();
        claim.shrink(BYTES_PER_INFLATER);
      }
      if (error === null) {
        claim.finish();
        // Copied in any case: a single chunk is a view of the socket's read buffer.
        done(null, Buffer.concat(chunks, bytes));
        return;
      }
      claim.release();
      chunks.length = 0;
      // The rest is read and discarded, so that the client can read the error.
      discardRest(request, payload, maxBytes);
      done(error);
    };
    const take = (chunk: Buffer): void => {
      if (isOver) return;
      bytes += chunk.length;
      if (bytes > maxBytes) stop(refusal('body_too_large'));
      else if (claim.grow(chunk.length)) chunks.push(chunk);
      else stop(refusal('overloaded'));
    };
    const pace = new Deadline(() => {
      // A body waiting for its inflater is not late.
      if (inflater?.writableNeedDrain) pace.set(windowMs);
      else stop(refusal('body_too_slow'));
    });
    let inWindow = 0;
    const arrived = (chunk: Buffer): void => {
      inWindow += chunk.length;
      if (inWindow >= MIN_BYTES_PER_WINDOW) {
        inWindow = 0;
        pace.renew();
      }
      if (inflater === null) take(chunk);
    };
    const arrivedWhole = (): void => {
      pace.clear();
      if (inflater === null) stop(null);
    };
    const broken = (): void => stop(refusal('invalid_request'));
    pace.set(windowMs);
    payload.on('data', arrived);
    payload.on('end', arrivedWhole);
    payload.on('error', broken);
    if (encoding !== 'none') {
      if (!claim.grow(BYTES_PER_INFLATER)) {
        stop(refusal('overloaded'));
        return;
      }
      inflater = encoding === 'gzip' ? createGunzip() : createInflate();
      inflater.on('data', take);
      inflater.on('end', () => stop(null));
      inflater.on('error', () => stop(new RequestError('invalid_request', null, `The body is not valid ${encoding} data.`)));
      payload.pipe(inflater);
    }
    payload.resume();
  }
}

/** The account or operator that a guard admitted. */
function accountIdOf(request: FastifyRequest): string | null {
  return request.apiKey?.accountId ?? request.sessionAccountId ?? request.operator;
}

type Encoding = 'none' | 'gzip' | 'deflate' | 'unknown';

function refusalCode(request: FastifyRequest, encoding: Encoding, isUnauthenticated: boolean, maxBytes: number): ErrorCode | null {
  if (request.isAnswered) return 'invalid_request';
  // Unauthenticated requests must not be compressed: inflating costs memory, and their bodies are small.
  if (encoding !== 'none' && isUnauthenticated) return 'body_encoded';
  if (encoding === 'unknown') return 'encoding_unsupported';
  return Number(request.headers['content-length']) > maxBytes ? 'body_too_large' : null;
}

/** Compression of a body (RFC 9110 section 8.4). */
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

/**
 * Discards the rest of a refused body, so that the client can read the response.
 *
 * Beyond `MAX_DISCARD_FACTOR` times the limit, the connection is destroyed.
 */
function discardRest(request: FastifyRequest, payload: NodeJS.ReadableStream, maxBytes: number): void {
  let left = MAX_DISCARD_FACTOR * maxBytes;
  payload.on('error', () => {});
  payload.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) request.raw.destroy();
  });
  payload.resume();
}

function refusal(code: ErrorCode): RequestError {
  return new RequestError(code, null, apiError(code).message);
}

const NO_BODY = new Uint8Array(0);

/** Bytes of the body; empty when the request has no body. */
export function bytesOf(request: FastifyRequest): Uint8Array {
  return request.body instanceof Uint8Array ? request.body : NO_BODY;
}
