/**
 * Client process of the end-to-end bench. On IPC commands, sends requests with plain `fetch`, or with that of `@inference/client`, which
 * encrypts them to providers.
 */
import { type AddressInfo, connect, createServer } from 'node:net';
import { createVerifiedFetch, verdictOf } from '@inference/client';
import { PLAIN_ANSWER, STREAM_END } from '../relay/answers.js';
import type { Target } from '../relay/http-connection.js';

/** TCP proxy that counts the bytes between a client and a server of this machine. */
class CountingProxy {
  /** Bytes in both directions so far. */
  bytes = 0;

  /** Forwards connections to the port. Resolves to the port of the proxy. */
  listen(to: number): Promise<number> {
    const server = createServer({ noDelay: true }, (client) => {
      const upstream = connect({ port: to, host: '127.0.0.1', noDelay: true });
      for (const [from, into] of [[client, upstream] as const, [upstream, client] as const]) {
        from.on('data', (data: Buffer) => {
          this.bytes += data.length;
        });
        from.on('error', () => into.destroy());
        from.pipe(into);
      }
    });
    return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)));
  }
}

/** Number of providers that each end-to-end request is sealed to. */
const CANDIDATES = 3;
const CONNECT_RETRY_MS = 500;
const CONNECT_DEADLINE_MS = 60_000;

export type Mode = 'plain' | 'e2e';

/** First command: the coordinator's address. Answered when the client has verified the providers. */
export interface Connect {
  readonly kind: 'connect';
  readonly target: Target;
}

/** Command: sends a fixed number of requests, at a fixed concurrency or rate. */
export interface Load {
  readonly kind: 'load';
  readonly mode: Mode;
  readonly body: string;
  readonly answers: number;
  /** Concurrency; with a rate, the maximum. */
  readonly atOnce: number;
  /** Requests started per second. Default: a new request starts when another ends. */
  readonly perSecond?: number;
}

export interface LoadResult {
  /** Processor time of this process. */
  readonly cpuMs: number;
}

/** Command: sends pairs of one plain and one end-to-end request, one request at a time. */
export interface Pairs {
  readonly kind: 'first_token' | 'bytes';
  readonly body: string;
  readonly pairs: number;
}

/** A figure for each request. `first_token`: milliseconds to the first body byte. `bytes`: bytes on the connection, in both directions. */
export type PairsResult = Readonly<Record<Mode, number[]>>;

type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** Sends requests of both modes to one coordinator. */
class Client {
  readonly #url: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #fetches: Readonly<Record<Mode, Fetch>>;
  readonly verified: ReturnType<typeof createVerifiedFetch>;

  constructor(port: number, { path, headers }: Target) {
    const baseURL = `http://127.0.0.1:${port}`;
    this.#url = baseURL + path;
    this.#headers = headers;
    const policy = { evidence: 'enclave', allowSimulated: true, candidates: CANDIDATES, minCandidates: CANDIDATES } as const;
    this.verified = createVerifiedFetch({ baseURL, policy });
    this.#fetches = { plain: fetch, e2e: this.verified };
  }

  /** Resolves to the milliseconds until the first body byte, after the whole response was read and checked. */
  async exchange(mode: Mode, body: string): Promise<number> {
    const begin = performance.now();
    const headers = { ...this.#headers, 'content-type': 'application/json' };
    const response = await this.#fetches[mode](this.#url, { method: 'POST', headers, body });
    const decoder = new TextDecoder();
    let firstMs = 0;
    let text = '';
    if (response.body === null) throw new Error('a client was answered without a body');
    for await (const piece of response.body) {
      if (firstMs === 0) firstMs = performance.now() - begin;
      text += decoder.decode(piece, { stream: true });
    }
    const isWhole = text === PLAIN_ANSWER || text.endsWith(STREAM_END);
    if (response.status !== 200 || !isWhole) throw new Error(`a client was answered ${response.status}: ${text.slice(0, 300)}`);
    if (mode === 'e2e' && verdictOf(response)?.state !== 'verified') throw new Error('an end-to-end answer was not verified');
    return firstMs;
  }
}

let client: Client | null = null;
/** Sends through the proxy. */
let countedClient: Client | null = null;
const proxy = new CountingProxy();

process.on('message', (command: Connect | Load | Pairs) => {
  run(command).then(
    (result) => process.send?.(result),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
process.on('disconnect', () => process.exit());
process.send?.({ ready: true });

async function run(command: Connect | Load | Pairs): Promise<object> {
  if (command.kind === 'connect') {
    const { target } = command;
    client = await connected(new Client(target.port, target));
    countedClient = await connected(new Client(await proxy.listen(target.port), target));
    return {};
  }
  if (client === null || countedClient === null) throw new Error('the client is not connected');
  if (command.kind === 'load') return load(client, command);
  return command.kind === 'bytes' ? connectionBytes(countedClient, command) : firstTokens(client, command);
}

/** Waits until the client is ready: providers appear in the keyset some seconds after their registration. */
async function connected(of: Client): Promise<Client> {
  const deadline = performance.now() + CONNECT_DEADLINE_MS;
  for (;;) {
    try {
      await of.verified.candidates('bench');
      return of;
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, CONNECT_RETRY_MS));
    }
  }
}

async function load(of: Client, { mode, body, answers, atOnce, perSecond }: Load): Promise<LoadResult> {
  let begun = 0;
  const startedAt = performance.now();
  const before = process.cpuUsage();
  const worker = async (): Promise<void> => {
    while (begun < answers) {
      const dueAt = perSecond === undefined ? 0 : startedAt + (begun * 1000) / perSecond;
      begun++;
      const waitMs = dueAt - performance.now();
      if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
      await of.exchange(mode, body);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  const { user, system } = process.cpuUsage(before);
  return { cpuMs: (user + system) / 1000 };
}

async function firstTokens(of: Client, { body, pairs }: Pairs): Promise<PairsResult> {
  const result: PairsResult = { plain: [], e2e: [] };
  for (let pair = 0; pair < pairs; pair++) {
    for (const mode of ['plain', 'e2e'] as const) result[mode].push(await of.exchange(mode, body));
  }
  return result;
}

async function connectionBytes(of: Client, { body, pairs }: Pairs): Promise<PairsResult> {
  const result: PairsResult = { plain: [], e2e: [] };
  for (let pair = 0; pair < pairs; pair++) {
    for (const mode of ['plain', 'e2e'] as const) {
      const before = proxy.bytes;
      await of.exchange(mode, body);
      result[mode].push(proxy.bytes - before);
    }
  }
  return result;
}
