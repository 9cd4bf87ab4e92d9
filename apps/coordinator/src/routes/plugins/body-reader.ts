/** `BodyReader` reads one request body into memory, and inflates it if compressed. Too large or slow bodies are refused. */
import type { Transform } from 'node:stream';
import { createGunzip, createInflate } from 'node:zlib';
import { apiError, type ErrorCode, RequestError } from '@inference/formats';
import type { FastifyRequest } from 'fastify';
import { Deadline } from '../../inference/deadline.js';
import type { Claim } from '../../limits/fair-budget.js';

/** Receives the bytes of a body, or the error for the client. */
export type Done = (error: Error | null, body?: Buffer) => void;

export type Encoding = 'none' | 'gzip' | 'deflate' | 'unknown';

interface BodyReaderOptions {
  readonly request: FastifyRequest;
  readonly payload: NodeJS.ReadableStream;
  /** Never `unknown`, which `RequestBodies` refuses earlier. */
  readonly encoding: Encoding;
  /** Maximum bytes of the body, after inflation. */
  readonly maxBytes: number;
  /** Claim on the memory budget, which grows with the body. The reader releases the claim if the body is refused. */
  readonly claim: Claim;
  /** Time within which {@link MIN_BYTES_PER_WINDOW} must arrive. */
  readonly windowMs: number;
  readonly done: Done;
}

/** Multiple of a route's body limit up to which the rest of a refused body is read and discarded. */
const MAX_DISCARD_FACTOR = 8;
/** Minimum bytes per window. Slower bodies are refused, because they occupy memory for a long time. */
const MIN_BYTES_PER_WINDOW = 4096;
/** Estimated memory of an inflater: window and buffers. */
const BYTES_PER_INFLATER = 64 * 1024;

export class BodyReader {
  readonly #options: BodyReaderOptions;
  /** Refuses a body that arrives too slowly, except while the inflater applies back-pressure. */
  readonly #pace: Deadline;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  #bytesInWindow = 0;
  #inflater: Transform | null = null;
  #isOver = false;

  constructor(options: BodyReaderOptions) {
    this.#options = options;
    this.#pace = new Deadline(() => {
      if (this.#inflater?.writableNeedDrain) this.#pace.set(options.windowMs);
      else this.refuse(bodyError('body_too_slow'));
    });
  }

  start(): void {
    const { payload, encoding, windowMs } = this.#options;
    this.#pace.set(windowMs);
    payload.on('data', this.#onData);
    payload.on('end', this.#onEnd);
    payload.on('error', this.#onError);
    const isInflated = encoding === 'gzip' || encoding === 'deflate';
    if (isInflated && !this.#startInflater(encoding)) return;
    payload.resume();
  }

  /** Stops reading and passes `error` to `done`. Does nothing once the body is read or refused. */
  refuse(error: RequestError): void {
    if (this.#isOver) return;
    const { request, payload, claim, maxBytes, done } = this.#options;
    this.#stop();
    claim.release();
    this.#chunks.length = 0;
    discardRest(request, payload, maxBytes);
    done(error);
  }

  #finish(): void {
    if (this.#isOver) return;
    const { claim, done } = this.#options;
    this.#stop();
    claim.finish();
    // `concat` copies even a single chunk, which is a view of the socket's read buffer.
    done(null, Buffer.concat(this.#chunks, this.#bytes));
  }

  #stop(): void {
    const { payload, claim } = this.#options;
    this.#isOver = true;
    this.#pace.clear();
    payload.removeListener('data', this.#onData);
    payload.removeListener('end', this.#onEnd);
    payload.removeListener('error', this.#onError);
    if (this.#inflater === null) return;
    payload.unpipe(this.#inflater);
    this.#inflater.destroy();
    claim.shrink(BYTES_PER_INFLATER);
  }

  /** Returns false if the memory budget does not allow an inflater. The body is then refused. */
  #startInflater(encoding: 'gzip' | 'deflate'): boolean {
    const { payload, claim } = this.#options;
    if (!claim.grow(BYTES_PER_INFLATER)) {
      this.refuse(bodyError('overloaded'));
      return false;
    }
    const inflater = encoding === 'gzip' ? createGunzip() : createInflate();
    this.#inflater = inflater;
    inflater.on('data', (chunk: Buffer) => this.#store(chunk));
    inflater.on('end', () => this.#finish());
    inflater.on('error', () => this.refuse(new RequestError('invalid_request', null, `The body is not valid ${encoding} data.`)));
    payload.pipe(inflater);
    return true;
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#bytesInWindow += chunk.length;
    if (this.#bytesInWindow >= MIN_BYTES_PER_WINDOW) {
      this.#bytesInWindow = 0;
      this.#pace.renew();
    }
    if (this.#inflater === null) this.#store(chunk);
  };

  readonly #onEnd = (): void => {
    this.#pace.clear();
    if (this.#inflater === null) this.#finish();
  };

  readonly #onError = (): void => this.refuse(bodyError('invalid_request'));

  #store(chunk: Buffer): void {
    if (this.#isOver) return;
    this.#bytes += chunk.length;
    if (this.#bytes > this.#options.maxBytes) this.refuse(bodyError('body_too_large'));
    else if (this.#options.claim.grow(chunk.length)) this.#chunks.push(chunk);
    else this.refuse(bodyError('overloaded'));
  }
}

/**
 * Discards the rest of a refused body, so that the client can read the response.
 *
 * Beyond {@link MAX_DISCARD_FACTOR} times the limit, the connection is destroyed.
 */
export function discardRest(request: FastifyRequest, payload: NodeJS.ReadableStream, maxBytes: number): void {
  let remainingBytes = MAX_DISCARD_FACTOR * maxBytes;
  payload.on('error', () => {});
  payload.on('data', (chunk: Buffer) => {
    remainingBytes -= chunk.length;
    if (remainingBytes < 0) request.raw.destroy();
  });
  payload.resume();
}

export function bodyError(code: ErrorCode): RequestError {
  return new RequestError(code, null, apiError(code).message);
}
