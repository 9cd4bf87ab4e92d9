/**
 * Reads evidence from files and URLs. Downloads have limits of time and size.
 *
 * Failed reads, including invalid JSON, throw an {@link UnavailableError} that names the file or URL.
 */
import { readFile } from 'node:fs/promises';
import { UnavailableError, UsageError } from './command.js';

const TIMEOUT_MS = 30_000;
const MAX_BYTES = 64 * 1024 * 1024;

/** Returns an `http` or `https` URL without trailing slashes. Throws {@link UsageError} for other text and for null. */
export function baseAddress(text: string | null): string {
  if (text === null || !URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) {
    throw new UsageError(`an address such as https://host is needed, not ${JSON.stringify(text)}`);
  }
  return text.replace(/\/+$/, '');
}

export async function downloadJson(url: string, headers: Record<string, string> = {}): Promise<unknown> {
  const { status, body } = await download(url, { headers });
  if (status !== 200) throw new UnavailableError(`${url} answered ${status}`);
  return parseJson(new TextDecoder().decode(body), url);
}

/** Fetches a URL uncompressed, so that `body` has the exact signed bytes. Returns responses of any status. */
export async function download(
  url: string,
  request: { readonly method?: string; readonly headers?: Record<string, string>; readonly body?: string; readonly timeoutMs?: number },
): Promise<{ readonly status: number; readonly headers: Headers; readonly body: Uint8Array }> {
  const { timeoutMs = TIMEOUT_MS, headers, ...rest } = request;
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    const response = await fetch(url, { ...rest, headers: { ...headers, 'accept-encoding': 'identity' }, signal, redirect: 'error' });
    return { status: response.status, headers: response.headers, body: await boundedBody(response, url) };
  } catch (error) {
    if (error instanceof UnavailableError) throw error;
    // Also a timeout, a redirect, or a body that breaks off.
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    throw new UnavailableError(`${url} cannot be reached: ${cause instanceof Error ? cause.message : String(cause)}`);
  }
}

export async function readBytes(file: string): Promise<Uint8Array> {
  try {
    return await readFile(file);
  } catch (error) {
    throw new UnavailableError(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

export async function readText(file: string): Promise<string> {
  return new TextDecoder().decode(await readBytes(file));
}

export async function readJson(file: string): Promise<unknown> {
  return parseJson(await readText(file), file);
}

function parseJson(text: string, from: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new UnavailableError(`${from} is not JSON`);
  }
}

async function boundedBody(response: Response, url: string): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  if (response.body !== null) {
    for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) {
      bytes += part.length;
      if (bytes > MAX_BYTES) throw new UnavailableError(`${url} answered with more than ${MAX_BYTES} bytes`);
      parts.push(part);
    }
  }
  return Buffer.concat(parts);
}
