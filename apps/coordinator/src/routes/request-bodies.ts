/**
 * Reads the bodies of requests, as the exact bytes that came, and counts those that are held: from their arrival until their
 * request is answered, because a job that is placed again needs its body again. Each is bounded by its route, all of them together
 * by one number. Who comes when that is reached is asked to come back, and nothing of theirs has begun.
 */
import { apiError, type ErrorCode, RequestError } from '@inference/formats';
import type { FastifyInstance, FastifyRequest } from 'fastify';

declare module 'fastify' {
  interface FastifyRequest {
    /** Bytes of its body that are counted as held; null once it is answered. */
    heldBytes: number | null;
  }
}

type Done = (error: Error | null, body?: Buffer) => void;

/** Of a body that is refused, this many times its bound is read at most, and dropped. */
const MOST_DROPPED = 8;

export class RequestBodies {
  readonly #most: number;
  #held = 0;

  /** At most `most` bytes are held at once. */
  constructor(most: number) {
    this.#most = most;
  }

  /** Bytes that are held now. */
  get held(): number {
    return this.#held;
  }

  /** Makes the server read all bodies in this way. */
  addTo(server: FastifyInstance): void {
    server.decorateRequest('heldBytes', 0);
    server.addHook('onRequest', (request, reply, done) => {
      reply.raw.once('close', () => this.#release(request));
      done();
    });
    server.addContentTypeParser('*', (request, payload, done: Done) => this.#read(request, payload, done));
  }

  #read(request: FastifyRequest, payload: NodeJS.ReadableStream, done: Done): void {
    const { bodyLimit } = request.routeOptions;
    const unread = isEncoded(request.headers['content-encoding'])
      ? 'body_encoded'
      : Number(request.headers['content-length']) > bodyLimit
        ? 'body_too_large'
        : null;
    if (unread !== null) {
      dropRest(request, payload);
      done(refusal(unread));
      return;
    }
    const chunks: Buffer[] = [];
    let bytes = 0;
    let full = false;
    const stop = (error: Error | null, body?: Buffer): void => {
      payload.removeListener('data', take);
      payload.removeListener('end', end);
      payload.removeListener('error', fail);
      done(error, body);
    };
    const take = (chunk: Buffer): void => {
      bytes += chunk.length;
      if (bytes > bodyLimit) {
        dropRest(request, payload);
        stop(refusal('body_too_large'));
      } else if (!full) {
        full = !this.#hold(request, chunk.length);
        chunks.push(chunk);
        // The rest is read and dropped, so that the client gets to read why.
        if (full) chunks.length = 0;
      }
    };
    // Joined in any case: a single chunk is a view of what the socket reads into.
    const end = (): void => (full ? stop(refusal('overloaded')) : stop(null, Buffer.concat(chunks, bytes)));
    const fail = (): void => stop(refusal('invalid_request'));
    payload.on('data', take);
    payload.on('end', end);
    payload.on('error', fail);
    payload.resume();
  }

  /** False where that would be too much; then the request holds nothing. */
  #hold(request: FastifyRequest, bytes: number): boolean {
    // Who is gone already is read to the end, and holds nothing that anybody would release.
    if (request.heldBytes === null) return true;
    if (this.#held + bytes > this.#most) {
      this.#held -= request.heldBytes;
      request.heldBytes = 0;
      return false;
    }
    this.#held += bytes;
    request.heldBytes += bytes;
    return true;
  }

  #release(request: FastifyRequest): void {
    this.#held -= request.heldBytes ?? 0;
    request.heldBytes = null;
  }
}

/** Whether the bytes are not the body itself (RFC 9110 section 8.4). */
function isEncoded(contentEncoding: string | undefined): boolean {
  return contentEncoding !== undefined && !/^(?:[\s,]|identity)*$/i.test(contentEncoding);
}

/**
 * Reads what still comes of a body that is answered already: a connection that is closed under a client that sends takes the
 * answer with it. Who does not come to an end is cut off.
 */
function dropRest(request: FastifyRequest, payload: NodeJS.ReadableStream): void {
  let left = MOST_DROPPED * request.routeOptions.bodyLimit;
  payload.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) request.raw.destroy();
  });
  payload.resume();
}

function refusal(code: ErrorCode): RequestError {
  return new RequestError(code, null, apiError(code).message);
}
