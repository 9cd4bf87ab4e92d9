/** `MaliciousCoordinator`: HTTP proxy in front of a real coordinator. Misbehaves in one way, and records all requests. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AttestationRecord, canonicalJsonBytes, type E2eKeyset, type JsonValue } from '@inference/protocol';
import { sha256Hex } from '@inference/protocol/crypto';
import { addressOf, closeServer, listenLocally } from './local-server.js';

const RESPONSE_NONCE_BYTES = 32;
const FRAME_HEADER_BYTES = 4;

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Chunks, sent at the client's pace. */
  readonly body: Uint8Array | Iterable<Uint8Array>;
}

export interface HonestAnswer extends Answer {
  readonly body: Uint8Array;
}

export interface Exchange {
  readonly path: string;
  /** Bearer token; null: none. */
  readonly apiKey: string | null;
  readonly body: Uint8Array;
  /** Forwards the request, or a changed request, to the real coordinator. */
  honest(change?: { readonly path?: string; readonly apiKey?: string; readonly body?: Uint8Array }): Promise<HonestAnswer>;
}

/** Changes an exchange. Null: the exchange is relayed unchanged. */
export type Behaviour = (exchange: Exchange) => Promise<Answer | null> | Answer | null;

export class MaliciousCoordinator {
  behaviour: Behaviour = () => null;
  /** Received request lines, headers and bodies, decoded as Latin-1. */
  readonly received: string[] = [];
  /** Bodies of `POST /v1/e2e/requests`. */
  readonly sealedRequests: Uint8Array[] = [];
  readonly #server = createServer((request, response) => void this.#serve(request, response).catch(() => response.destroy()));

  private constructor(private readonly realUrl: string) {}

  static async start(realUrl: string): Promise<MaliciousCoordinator> {
    const coordinator = new MaliciousCoordinator(realUrl);
    await listenLocally(coordinator.#server);
    return coordinator;
  }

  get address(): string {
    return addressOf(this.#server);
  }

  /** Sets the behaviour and forgets recorded requests. */
  become(behaviour: Behaviour): void {
    this.behaviour = behaviour;
    this.received.length = 0;
    this.sealedRequests.length = 0;
  }

  async close(): Promise<void> {
    await closeServer(this.#server);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const { method = 'GET', url: path = '/' } = request;
    this.received.push(`${method} ${path}\n${request.rawHeaders.join('\n')}\n${body.toString('latin1')}`);
    if (path === '/v1/e2e/requests') this.sealedRequests.push(body);
    const { authorization } = request.headers;
    const honest: Exchange['honest'] = async (change = {}) => {
      const apiKey = change.apiKey === undefined ? authorization : `Bearer ${change.apiKey}`;
      const answer = await fetch(this.realUrl + (change.path ?? path), {
        method,
        headers: {
          ...(apiKey === undefined ? {} : { authorization: apiKey }),
          ...(request.headers['content-type'] === undefined ? {} : { 'content-type': request.headers['content-type'] }),
        },
        ...(method === 'POST' ? { body: new Uint8Array(change.body ?? body) } : {}),
      });
      const headers = Object.fromEntries([...answer.headers].filter(([name]) => !/^(content-length|connection|keep-alive)$/.test(name)));
      return { status: answer.status, headers, body: new Uint8Array(await answer.arrayBuffer()) };
    };
    const apiKey = authorization?.replace(/^Bearer /, '') ?? null;
    await send(response, (await this.behaviour({ path, apiKey, body, honest })) ?? (await honest()));
  }
}

async function send(response: ServerResponse, { status, headers, body }: Answer): Promise<void> {
  response.writeHead(status, headers);
  for (const chunk of body instanceof Uint8Array ? [body] : body) {
    if (response.destroyed) return;
    await new Promise<void>((resolve) => {
      response.once('close', resolve);
      response.write(chunk, () => {
        response.removeListener('close', resolve);
        resolve();
      });
    });
  }
  response.end();
}

/** Serves a changed keyset. */
export function withKeyset(change: (keyset: E2eKeyset, exchange: Exchange) => E2eKeyset): Behaviour {
  return async (exchange) => {
    if (exchange.path !== '/v1/e2e/keyset') return null;
    const { headers, body } = await exchange.honest();
    return { status: 200, headers, body: jsonBytes(change(JSON.parse(Buffer.from(body).toString()) as E2eKeyset, exchange)) };
  };
}

/** Serves changed attestation records, and a keyset with their hashes. Records are changed once, as signatures are random. */
export function withRecords(change: (record: AttestationRecord) => AttestationRecord): Behaviour {
  const changed = new Map<string, Uint8Array>();
  const changedSha256 = new Map<string, string>();
  return async (exchange) => {
    const { path, honest } = exchange;
    const record = changed.get(path);
    if (record !== undefined) return { status: 200, headers: { 'content-type': 'application/json' }, body: record };
    if (path !== '/v1/e2e/keyset') return null;
    const { headers, body } = await honest();
    const keyset = JSON.parse(Buffer.from(body).toString()) as E2eKeyset;
    const providers = [];
    for (const entry of keyset.providers) {
      const known = changedSha256.get(entry.record_sha256);
      if (known !== undefined) {
        providers.push({ ...entry, record_sha256: known });
        continue;
      }
      const { body: text } = await honest({ path: `/v1/e2e/records/${entry.record_sha256}` });
      const bytes = canonicalJsonBytes(change(JSON.parse(Buffer.from(text).toString()) as AttestationRecord) as unknown as JsonValue);
      const record_sha256 = sha256Hex(bytes);
      changed.set(`/v1/e2e/records/${record_sha256}`, bytes);
      changedSha256.set(entry.record_sha256, record_sha256);
      providers.push({ ...entry, record_sha256 });
    }
    return { status: 200, headers, body: jsonBytes({ ...keyset, providers }) };
  };
}

/** Answers sealed requests with changed bytes of the honest answer. */
export function withAnswer(change: (answer: HonestAnswer, exchange: Exchange) => Answer | Promise<Answer>): Behaviour {
  return async (exchange) => (exchange.path === '/v1/e2e/requests' ? change(await exchange.honest(), exchange) : null);
}

/** Answers sealed requests with the response nonce and frames of the honest answer, changed. */
export function withFrames(change: (nonce: Uint8Array, frames: readonly Uint8Array[]) => readonly (Uint8Array | undefined)[]): Behaviour {
  return withAnswer((answer) => {
    const [nonce, frames] = framesOf(answer.body);
    return { ...answer, body: Buffer.concat(change(nonce, frames).map((piece) => piece ?? new Uint8Array())) };
  });
}

/** Response nonce and frames of a sealed answer. Throws if bytes are left over. */
export function framesOf(body: Uint8Array): [nonce: Uint8Array, frames: Uint8Array[]] {
  const frames: Uint8Array[] = [];
  let at = RESPONSE_NONCE_BYTES;
  while (at < body.length) {
    const length = Buffer.from(body.buffer, body.byteOffset + at + 1, 3).readUIntBE(0, 3);
    frames.push(body.slice(at, at + FRAME_HEADER_BYTES + length));
    at += FRAME_HEADER_BYTES + length;
  }
  if (at !== body.length) throw new Error('the answer does not end with a frame');
  return [body.slice(0, RESPONSE_NONCE_BYTES), frames];
}

function jsonBytes(value: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}
