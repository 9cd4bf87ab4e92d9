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

/** Of a body beyond its bound, this many times the bound is read and dropped: clients that are cut off while they send never read why. */
const READ_TO_TELL = 8;

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
    const stated = Number(request.headers['content-length']);
    if (stated > READ_TO_TELL * bodyLimit) {
      done(refusal('body_too_large'));
      return;
    }
    const chunks: Buffer[] = [];
    let bytes = 0;
    let refused: ErrorCode | null = stated > bodyLimit ? 'body_too_large' : isEncoded(request) ? 'encoded_body' : null;
    const stop = (error: Error | null, body?: Buffer): void => {
      payload.removeListener('data', take);
      payload.removeListener('end', end);
      payload.removeListener('error', fail);
      done(error, body);
    };
    const take = (chunk: Buffer): void => {
      bytes += chunk.length;
      if (bytes > READ_TO_TELL * bodyLimit) stop(refusal('body_too_large'));
      if (bytes > bodyLimit) refused = 'body_too_large';
      else if (refused === null && !this.#hold(request, chunk.length)) refused = 'overloaded';
      if (refused === null) chunks.push(chunk);
      else {
        // The rest is read and dropped, so that the client gets to read why.
        chunks.length = 0;
        this.#letGo(request);
      }
    };
    // Joined in any case: a single chunk is a view of what the socket reads into.
    const end = (): void => (refused === null ? stop(null, Buffer.concat(chunks, bytes)) : stop(refusal(refused)));
    const fail = (): void => stop(refusal('invalid_request'));
    payload.on('data', take);
    payload.on('end', end);
    payload.on('error', fail);
    payload.resume();
  }

  /** False where that would be too much. */
  #hold(request: FastifyRequest, bytes: number): boolean {
    // Who is gone already is read to the end, and holds nothing that anybody would release.
    if (request.heldBytes === null) return true;
    if (this.#held + bytes > this.#most) return false;
    this.#held += bytes;
    request.heldBytes += bytes;
    return true;
  }

  /** Nothing of the request is held any more. */
  #letGo(request: FastifyRequest): void {
    if (request.heldBytes === null) return;
    this.#held -= request.heldBytes;
    request.heldBytes = 0;
  }

  #release(request: FastifyRequest): void {
    this.#letGo(request);
    request.heldBytes = null;
  }
}

function isEncoded({ headers }: FastifyRequest): boolean {
  const { 'content-encoding': coding = 'identity' } = headers;
  return coding.toLowerCase() !== 'identity';
}

function refusal(code: ErrorCode): RequestError {
  return new RequestError(code, null, apiError(code).message);
}
