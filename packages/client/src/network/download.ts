/** Downloads public evidence: bounded in time and size, without redirects, and without credentials unless given. */
import { concatBytes, fromUtf8 } from '@inference/protocol';
import { type E2ERefusalCode, E2ERefused } from '../refusal.js';

export type Fetch = (input: string, init: RequestInit) => Promise<Response>;

/** Maximum keyset or record, in bytes. */
const MAX_BYTES = 16 * 1024 * 1024;
const TIMEOUT_MS = 30_000;

export interface DownloadOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** Refusal for a redirect or a 404. Default: `downgraded`. */
  readonly whenMissing?: E2ERefusalCode;
}

/** Like {@link download}, for JSON. Throws {@link E2ERefused} `downgraded` for other content. */
export async function downloadJson(fetch: Fetch, url: string, options: DownloadOptions = {}): Promise<unknown> {
  const bytes = await download(fetch, url, { maxBytes: MAX_BYTES, accept: 'application/json', ...options });
  try {
    return JSON.parse(fromUtf8(bytes)) as unknown;
  } catch {
    throw new E2ERefused('downgraded', `${new URL(url).pathname} is not JSON.`);
  }
}

/** Runs `encode`. Returns null for JSON without a canonical form: a lone surrogate, or too deep nesting. */
export function canonicalBytesOrNull(encode: () => Uint8Array): Uint8Array | null {
  try {
    return encode();
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) return null;
    throw error;
  }
}

/**
 * Downloads the bytes at an address.
 *
 * @throws {E2ERefused} `whenMissing` for a 404 or a redirect, `coordinator_said` for another status or too many bytes.
 */
export async function download(
  fetch: Fetch,
  url: string,
  {
    headers = {},
    whenMissing = 'downgraded',
    maxBytes,
    accept = '*/*',
  }: DownloadOptions & { readonly maxBytes: number; readonly accept?: string },
): Promise<Uint8Array> {
  const init = {
    headers: { accept, ...headers },
    // For browsers: a cached keyset could hide that two callers get different keysets.
    cache: 'no-store',
    credentials: 'omit',
    redirect: 'manual',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  } as const;
  const response = await fetch(url, init);
  const path = new URL(url).pathname;
  if (response.status !== 200) {
    await response.body?.cancel();
    if (response.status === 404 || isRedirect(response)) throw new E2ERefused(whenMissing, `${path} answered ${response.status}.`);
    throw new E2ERefused('coordinator_said', `${path} answered ${response.status}.`, response.status);
  }
  return await boundedBytes(response, maxBytes);
}

/** Redirects are never followed. Browsers report a redirect with status 0 (Fetch, section 2.2.6: opaque-redirect filtered response). */
function isRedirect({ status, type }: Response): boolean {
  return type === 'opaqueredirect' || (status >= 300 && status < 400);
}

/** Reads the body of a response. Throws {@link E2ERefused} `coordinator_said` beyond `maxBytes`. */
export async function boundedBytes(response: Response, maxBytes: number): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of chunksOf(response.body)) {
    length += piece.length;
    if (length > maxBytes) throw new E2ERefused('coordinator_said', `An answer has more than ${maxBytes} bytes.`, 502);
    pieces.push(piece);
  }
  return concatBytes(...pieces);
}

/** Chunks of a body. Leaving the loop cancels the body. */
export async function* chunksOf(body: ReadableStream<Uint8Array> | null): AsyncGenerator<Uint8Array, void, undefined> {
  if (body === null) return;
  const reader = body.getReader();
  let isDone = false;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        isDone = true;
        return;
      }
      yield value;
    }
  } finally {
    if (!isDone) await reader.cancel().catch(() => {});
    reader.releaseLock();
  }
}
