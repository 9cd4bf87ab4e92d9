/** `SlowClient`: API client whose pace of sending, reading and disconnecting a test controls. */
import http from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { type Access, type Answer, type Ask, bodyFor, judge } from './verified-client.js';

export class SlowClient {
  readonly request: http.ClientRequest;
  readonly #ask: Ask;
  readonly #body: Buffer;
  /** Resolves to the answer's head. Rejects when the connection ends before. */
  readonly response: Promise<http.IncomingMessage>;
  readonly connected: Promise<void>;
  /** Resolves when the connection has ended, on either side's initiative. */
  readonly closed: Promise<void>;
  readonly #parts: Buffer[] = [];

  /** Connects; nothing of the body is sent yet. */
  constructor(access: Access, ask: Ask) {
    this.#ask = ask;
    this.#body = Buffer.from(bodyFor(ask));
    this.request = http.request(access.baseUrl + (ask.endpoint ?? '/v1/chat/completions'), {
      method: 'POST',
      agent: false,
      headers: { 'x-api-key': access.apiKey, 'content-type': 'application/json', 'content-length': this.#body.length },
    });
    this.response = new Promise((resolve, reject) => {
      this.request.once('response', (response) => {
        // Paused, so that bytes are read only when a test calls a read method.
        response.pause();
        response.on('error', () => {});
        resolve(response);
      });
      this.request.on('error', reject);
    });
    this.response.catch(() => {});
    this.connected = new Promise((resolve) => {
      this.request.once('socket', (socket) => socket.once('connect', () => resolve()));
    });
    this.closed = new Promise((resolve) => this.request.once('close', resolve));
    this.request.flushHeaders();
  }

  /** Sends the body, or a prefix, in pieces of the given size. */
  async send({ bytes = this.#body.length, piece = this.#body.length, everyMs = 0 } = {}): Promise<this> {
    for (let at = 0; at < bytes; at += piece) {
      if (at > 0) await pause(everyMs);
      this.request.write(this.#body.subarray(at, Math.min(bytes, at + piece)));
    }
    if (bytes >= this.#body.length) this.request.end();
    return this;
  }

  get bodyLength(): number {
    return this.#body.length;
  }

  get read(): Buffer {
    return Buffer.concat(this.#parts);
  }

  /** Reads at least this many bytes, rounded up; resolves early at the end. */
  async readBytes(bytes: number): Promise<void> {
    const response = await this.response;
    // A stream returns 0 bytes for a fractional size, and the loop would never leave the microtask queue.
    let left = Math.ceil(bytes);
    while (left > 0) {
      const part = response.read(Math.min(left, Math.max(1, response.readableLength))) as Buffer | null;
      if (part !== null) {
        this.#parts.push(part);
        left -= part.length;
      } else if (response.readableEnded || response.destroyed) return;
      else await untilReadableOrEnded(response);
    }
  }

  /** Reads to the end in pieces of the given size. Resolves to the parsed response. */
  async finish({ piece = 1 << 20, everyMs = 0 } = {}): Promise<Answer> {
    const response = await this.response;
    while (!response.readableEnded && !response.destroyed) {
      await this.readBytes(piece);
      if (everyMs > 0) await pause(everyMs);
    }
    const headers = new Headers(Object.entries(response.headers).map(([name, value]) => [name, String(value)] as [string, string]));
    return judge({ status: response.statusCode ?? 0, headers }, this.read, this.#ask);
  }

  leave(): void {
    this.request.destroy();
  }
}

function untilReadableOrEnded(response: http.IncomingMessage): Promise<void> {
  const events = ['readable', 'end', 'close'] as const;
  return new Promise((resolve) => {
    const done = (): void => {
      for (const event of events) response.off(event, done);
      resolve();
    };
    for (const event of events) response.on(event, done);
  });
}
