/** Reads a file, or ranges of its bytes, over HTTP (RFC 9110 section 14). A response with another range than requested is an error. */

export interface RangeSource {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** With `manual`, a redirect is an error (`refused`). */
  readonly redirect?: 'follow' | 'manual';
}

/** `transient`: a retry may succeed. `refused`: a retry is useless. `changed`: the file on the server was replaced. */
export class TransferError extends Error {
  constructor(
    readonly kind: 'transient' | 'changed' | 'refused',
    message: string,
  ) {
    super(message);
    this.name = 'TransferError';
  }
}

export interface Probe {
  /** Null if the server reports no length. */
  readonly bytes: number | null;
  readonly supportsRanges: boolean;
  /** A strong entity tag, or the time of the last change. Null if the server reports neither. */
  readonly validator: string | null;
}

/** Length and version of the file. Requests the first byte, because responses to HEAD are unreliable behind redirects. */
export async function probe(source: RangeSource, signal: AbortSignal, stallMs: number): Promise<Probe> {
  const { response, stop } = await request(source, { range: 'bytes=0-0' }, signal, stallMs);
  stop();
  const etag = response.headers.get('etag');
  const validator = etag !== null && !etag.startsWith('W/') ? etag : response.headers.get('last-modified');
  if (response.status === 206) {
    const total = parseContentRange(response)?.total ?? null;
    return { bytes: total, supportsRanges: total !== null, validator };
  }
  const length = response.headers.get('content-length');
  return { bytes: length === null || response.headers.has('content-encoding') ? null : Number(length), supportsRanges: false, validator };
}

/** Reads the bytes from `start` up to, not including, `end`, of the version `validator`. */
export async function* readRange(
  source: RangeSource,
  { start, end }: { readonly start: number; readonly end: number },
  validator: string | null,
  signal: AbortSignal,
  stallMs: number,
): AsyncGenerator<Uint8Array> {
  const headers = { range: `bytes=${start}-${end - 1}`, ...(validator === null ? {} : { 'if-range': validator }) };
  const opened = await request(source, headers, signal, stallMs);
  const { response } = opened;
  try {
    if (response.status === 200) throw new TransferError('changed', 'the file on the server changed while it was downloaded');
    const range = parseContentRange(response);
    if (response.status !== 206 || range?.start !== start || range.end !== end - 1) {
      throw new TransferError('transient', 'the server sent another part of the file than requested');
    }
    let left = end - start;
    for await (const bytes of readChunks(opened, stallMs)) {
      if (bytes.length > left) throw new TransferError('transient', 'the server sent more than requested');
      left -= bytes.length;
      yield bytes;
    }
    if (left > 0) throw new TransferError('transient', `the connection was lost with ${left} bytes missing`);
  } finally {
    opened.stop();
  }
}

export async function* readWhole(source: RangeSource, signal: AbortSignal, stallMs: number): AsyncGenerator<Uint8Array> {
  const opened = await request(source, {}, signal, stallMs);
  try {
    yield* readChunks(opened, stallMs);
  } finally {
    opened.stop();
  }
}

interface OpenResponse {
  readonly response: Response;
  /** Ends the transfer. Must be called, even if the transfer is complete. */
  readonly stop: () => void;
  readonly stopped: AbortSignal;
}

async function request(
  { url, headers, redirect }: RangeSource,
  rangeHeaders: Readonly<Record<string, string>>,
  signal: AbortSignal,
  stallMs: number,
): Promise<OpenResponse> {
  signal.throwIfAborted();
  const abort = new AbortController();
  const stop = (): void => {
    signal.removeEventListener('abort', stop);
    abort.abort();
  };
  signal.addEventListener('abort', stop, { once: true });
  const timer = setTimeout(stop, stallMs);
  let response: Response;
  try {
    response = await fetch(url, {
      // Ranges of a compressed response would refer to the compressed bytes.
      headers: { 'accept-encoding': 'identity', ...headers, ...rangeHeaders },
      redirect: redirect ?? 'follow',
      signal: abort.signal,
    });
  } catch (error) {
    stop();
    signal.throwIfAborted();
    throw new TransferError('transient', `the server cannot be reached (${reasonOf(error)})`);
  } finally {
    clearTimeout(timer);
  }
  if (response.ok) return { response, stop, stopped: abort.signal };
  stop();
  const isTransient = response.status >= 500 || response.status === 408 || response.status === 429;
  throw new TransferError(isTransient ? 'transient' : 'refused', statusSentence(response.status));
}

function statusSentence(status: number): string {
  if (status === 401 || status === 403)
    return `the server requires a token for this file (status ${status}): set HF_TOKEN to one with access`;
  if (status === 404) return 'the server has no such file (status 404)';
  return `the server answered with status ${status}`;
}

async function* readChunks({ response, stop, stopped }: OpenResponse, stallMs: number): AsyncGenerator<Uint8Array> {
  if (response.body === null) return;
  const reader = response.body.getReader();
  // A pending read of an aborted request may never settle.
  const aborted = new Promise<never>((_, reject) => {
    stopped.addEventListener('abort', () => reject(new TransferError('transient', 'the connection was lost')), { once: true });
  });
  aborted.catch(() => {});
  const timer = setTimeout(stop, stallMs);
  try {
    for (;;) {
      const { done, value } = await Promise.race([reader.read(), aborted]);
      if (done) return;
      timer.refresh();
      yield value;
    }
  } catch (error) {
    throw error instanceof TransferError ? error : new TransferError('transient', `the connection was lost (${reasonOf(error)})`);
  } finally {
    clearTimeout(timer);
    reader.cancel().catch(() => {});
  }
}

function parseContentRange(response: Response): { readonly start: number; readonly end: number; readonly total: number } | null {
  const match = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(response.headers.get('content-range') ?? '');
  return match === null ? null : { start: Number(match[1]), end: Number(match[2]), total: Number(match[3]) };
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return (cause as NodeJS.ErrnoException).code ?? (cause instanceof Error ? cause.name : 'unknown');
}
