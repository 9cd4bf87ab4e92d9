/** A `fetch` for inference SDKs that seals requests to verified providers and verifies answers, so the coordinator can read neither. */
import { E2E_REQUEST_CONTENT_TYPE, type E2eCrypto, fromBase64Url, fromUtf8, type SealedE2eRequest } from '@inference/protocol';
import { refusalResponse } from './answer/errors.js';
import { openAnswer } from './answer/open-answer.js';
import { coordinatorLog } from './network/coordinator-log.js';
import { boundedBytes, type Fetch } from './network/download.js';
import type { LogVerifier } from './network/log-verifier.js';
import { Network } from './network/network.js';
import { ClientState, memoryStore, type Store } from './network/store.js';
import { untilAborted } from './network/until-aborted.js';
import type { VerifiedProvider } from './network/verified-provider.js';
import { type PolicyInput, parsePolicy } from './policy/policy.js';
import { E2ERefused } from './refusal.js';
import { sealRequest } from './request/seal.js';
import { authorizationOf, endpointOf, InvalidRequest, readSealableRequest, type SealableRequest } from './request/sealable-request.js';
import { type E2eVerdict, setVerdict, VerdictCell } from './verdict.js';

/** Maximum error body of the coordinator, in bytes. */
const MAX_ERROR_BYTES = 64 * 1024;
/** Headers of the coordinator's errors that SDKs act on. */
const RETRY_HEADERS = ['retry-after', 'x-should-retry'];

export interface VerifiedFetchOptions {
  /** Address of the coordinator, with or without `/v1`. */
  readonly baseURL: string;
  /** Default: a certificate chain of the manufacturer is required, and three candidates. */
  readonly policy?: PolicyInput;
  /** Default: the memory of this process. */
  readonly store?: Store;
  /** Transport. Default: the runtime's `fetch`. */
  readonly fetch?: Fetch;
  /**
   * Fetches images that requests reference by `https` URL, before sealing. Default: the runtime's `fetch`. null: URLs are refused.
   *
   * The caller chooses the URL. A program that forwards requests of others must refuse private addresses here (SSRF).
   */
  readonly fetchImage?: Fetch | null;
  /** Default: the log of the coordinator, under the keys of the policy. */
  readonly logVerifier?: LogVerifier;
  /** base64url of 32 bytes. Requests with the same secret share prefix-cache entries at a provider. Default: none are shared. */
  readonly cacheSecret?: string;
  /** Called with each response's final verdict. */
  readonly onVerdict?: (verdict: E2eVerdict, exchange: Exchange) => void;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/** Names an exchange without its content. */
export interface Exchange {
  readonly method: string;
  readonly path: string;
}

export interface VerifiedFetch {
  (input: string | URL | Request, init?: RequestInit): Promise<Response>;
  /** Resolves when the keyset is verified. Rejects with {@link E2ERefused}. */
  ready(): Promise<void>;
  /** Returns the providers that the next request for a model is sealed to. Rejects with {@link E2ERefused}. */
  candidates(model: string): Promise<readonly VerifiedProvider[]>;
}

/**
 * Creates a `fetch` that seals inference requests. GET and HEAD are relayed unverified; other requests reject with
 * {@link E2ERefused}.
 *
 * A refused inference request resolves to an error response; refusals of this client have status 403, which SDKs do not retry.
 * `verdictOf` tells the reason.
 *
 * @throws {PolicyError} The policy is invalid.
 * @throws {TypeError} Another option is invalid.
 */
export function verifiedFetch(crypto: E2eCrypto, options: VerifiedFetchOptions): VerifiedFetch {
  const client = new VerifiedClient(crypto, options);
  return Object.assign((input: string | URL | Request, init?: RequestInit) => client.fetch(input, init), {
    ready: () => client.ready(),
    candidates: (model: string) => client.candidates(model),
  });
}

class VerifiedClient {
  readonly #crypto: E2eCrypto;
  readonly #base: string;
  readonly #transport: Fetch;
  readonly #fetchImage: Fetch | null;
  readonly #network: Network;
  readonly #cacheSecret: string | null;
  readonly #onVerdict: (verdict: E2eVerdict, exchange: Exchange) => void;
  readonly #now: () => number;

  constructor(crypto: E2eCrypto, options: VerifiedFetchOptions) {
    this.#crypto = crypto;
    this.#base = baseOf(options.baseURL);
    const runtimeFetch: Fetch = (input, init) => globalThis.fetch(input, init);
    this.#transport = options.fetch ?? runtimeFetch;
    this.#fetchImage = options.fetchImage === undefined ? runtimeFetch : options.fetchImage;
    this.#cacheSecret = cacheSecretOf(options.cacheSecret);
    this.#onVerdict = options.onVerdict ?? (() => {});
    this.#now = options.now ?? Date.now;
    const policy = parsePolicy(options.policy);
    const source = { fetch: this.#transport, base: this.#base };
    this.#network = new Network({
      ...source,
      crypto,
      policy,
      state: new ClientState(options.store ?? memoryStore()),
      logVerifier: policy.log === 'required' ? (options.logVerifier ?? coordinatorLog(source, policy)) : null,
      now: this.#now,
    });
  }

  async ready(): Promise<void> {
    await this.#network.ready();
  }

  async candidates(model: string): Promise<readonly VerifiedProvider[]> {
    return (await this.#network.candidates({ model })).providers;
  }

  async fetch(input: string | URL | Request, init: RequestInit = {}): Promise<Response> {
    // Node requires `duplex` for streamed bodies, and its types do not know the member.
    const request = new Request(input, { ...init, ...(init.body ? { duplex: 'half' } : {}) } as RequestInit);
    request.signal.throwIfAborted();
    const path = this.#pathOf(request.url);
    const exchange = { method: request.method, path };
    if (request.method === 'GET' || request.method === 'HEAD') return this.#relay(request, exchange);
    const endpoint = endpointOf(path);
    if (request.method !== 'POST' || endpoint === null) {
      throw new E2ERefused('not_sealable', `${request.method} ${path} is no inference request, and would be sent in clear.`);
    }
    const onFinal = (verdict: E2eVerdict): void => this.#onVerdict(verdict, exchange);
    try {
      const sealable = await untilAborted(readSealableRequest(request, endpoint, this.#fetchImage), request.signal);
      return await this.#exchange(sealable, request.signal, onFinal);
    } catch (error) {
      // An abort with the caller's own reason looks like a broken connection.
      request.signal.throwIfAborted();
      if (error instanceof InvalidRequest) {
        const { status, headers, body } = error.response;
        const refusal = new E2ERefused('not_sealable', error.message, null, { cause: error });
        return setVerdict(new Response(body, { status, headers }), new VerdictCell({ state: 'refused', refusal }, onFinal));
      }
      if (!(error instanceof E2ERefused)) throw error;
      const retry = error instanceof CoordinatorError ? error.headers : {};
      return setVerdict(refusalResponse(endpoint, error, retry), new VerdictCell({ state: 'refused', refusal: error }, onFinal));
    }
  }

  async #exchange(request: SealableRequest, signal: AbortSignal, onFinal: (verdict: E2eVerdict) => void): Promise<Response> {
    let hasRefreshed = false;
    for (;;) {
      signal.throwIfAborted();
      const { model, authorization, providerId } = request;
      const candidates = await untilAborted(this.#network.candidates({ model, authorization, providerId }), signal);
      const sealed = sealRequest(this.#crypto, request, candidates, { now: this.#now(), cacheSecret: this.#cacheSecret });
      const response = await this.#send(sealed, authorization, signal);
      if (isStaleKey(response) && !hasRefreshed) {
        hasRefreshed = true;
        await response.body?.cancel();
        this.#network.invalidate();
        continue;
      }
      if (response.status >= 400) throw await coordinatorError(response);
      const compareCheckpoint = async (note: string): Promise<void> => {
        if (candidates.log !== null) await untilAborted(this.#network.compareCheckpoint(note, candidates.log), signal);
      };
      const { providers } = candidates;
      const input = { crypto: this.#crypto, response, request, sealed, providers, signal, compareCheckpoint, onFinal };
      return openAnswer(input).catch(async (error: unknown) => {
        // Ends the relay of an unused body. A broken body rejects here, too.
        if (response.body?.locked === false) await response.body.cancel().catch(() => {});
        throw error;
      });
    }
  }

  /** Sends the sealed bytes and the caller's API key, and no other header of the caller. */
  async #send(sealed: SealedE2eRequest, authorization: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Response> {
    const response = await this.#transport(`${this.#base}/v1/e2e/requests`, {
      method: 'POST',
      headers: { ...authorization, 'content-type': E2E_REQUEST_CONTENT_TYPE },
      // A copy on its own buffer: `BodyInit` excludes views of shared memory.
      body: new Uint8Array(sealed.bytes),
      credentials: 'omit',
      // Not `error`: SDKs would repeat a request whose connection seems to fail. A redirect is refused as `downgraded` instead.
      redirect: 'manual',
      signal,
    });
    return response;
  }

  async #relay(request: Request, exchange: Exchange): Promise<Response> {
    const response = await this.#transport(request.url, {
      method: request.method,
      headers: { ...authorizationOf(request.headers), accept: request.headers.get('accept') ?? '*/*' },
      credentials: 'omit',
      redirect: 'error',
      signal: request.signal,
    });
    const headers = new Headers(response.headers);
    // The coordinator must not mark its own answers as verified.
    headers.set('x-inference-e2e', 'unverified');
    const { status, statusText } = response;
    const onFinal = (verdict: E2eVerdict): void => this.#onVerdict(verdict, exchange);
    return setVerdict(new Response(response.body, { status, statusText, headers }), new VerdictCell({ state: 'unverified' }, onFinal));
  }

  /** Returns the path below the base address. Throws {@link E2ERefused} `not_sealable` for another origin. */
  #pathOf(address: string): string {
    const base = new URL(this.#base);
    const url = new URL(address);
    const prefix = base.pathname.replace(/\/$/, '');
    if (url.origin !== base.origin || !`${url.pathname}/`.startsWith(`${prefix}/`)) {
      throw new E2ERefused('not_sealable', `${url.origin}${url.pathname} is not below ${this.#base}.`);
    }
    return url.pathname.slice(prefix.length);
  }
}

/** The coordinator's error, with headers for the SDK's retries. */
class CoordinatorError extends E2ERefused {
  constructor(
    message: string,
    status: number,
    readonly headers: Readonly<Record<string, string>>,
  ) {
    super('coordinator_said', message, status);
  }
}

/** Converts an error response. A 404 becomes `downgraded`: the coordinator does not offer end-to-end mode, or not for this model. */
async function coordinatorError(response: Response): Promise<E2ERefused> {
  const headers = RETRY_HEADERS.flatMap((name) => {
    const value = response.headers.get(name);
    return value === null ? [] : [[name, value] as const];
  });
  const reported = messageIn(await boundedBytes(response, MAX_ERROR_BYTES));
  const message = `The coordinator answered ${response.status} (not authenticated)${reported === '' ? '.' : `: ${reported}`}`;
  if (response.status === 404) return new E2ERefused('downgraded', message);
  return new CoordinatorError(message, response.status, Object.fromEntries(headers));
}

/** Returns the message of an error body in the OpenAI form or of RFC 9457; empty if there is none. */
function messageIn(body: Uint8Array): string {
  try {
    const value = JSON.parse(fromUtf8(body)) as { error?: { message?: unknown }; detail?: unknown } | null;
    const message = value?.error?.message ?? value?.detail;
    return typeof message === 'string' ? message.slice(0, 512) : '';
  } catch {
    return '';
  }
}

/** Problem response (RFC 9457) with status 422: no candidate has the key that the sealed request names. */
function isStaleKey(response: Response): boolean {
  return response.status === 422 && (response.headers.get('content-type') ?? '').startsWith('application/problem+json');
}

function baseOf(text: string): string {
  if (!URL.canParse(text)) throw new TypeError(`baseURL is no address: ${JSON.stringify(text)}`);
  const { protocol, origin, pathname, search, hash, username, password } = new URL(text);
  if (!/^https?:$/.test(protocol) || [search, hash, username, password].some((part) => part !== '')) {
    throw new TypeError('baseURL is an http or https address without query, fragment and credentials');
  }
  return origin + pathname.replace(/\/+$/, '').replace(/\/v1$/, '');
}

function cacheSecretOf(text: string | undefined): string | null {
  if (text === undefined) return null;
  try {
    if (fromBase64Url(text).length === 32) return text;
  } catch {
    // Falls through to the error below.
  }
  throw new TypeError('cacheSecret is 32 bytes in base64url without padding');
}
