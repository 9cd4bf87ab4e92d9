/** HTTP requests of commands to the coordinator. Only JSON of bounded size is accepted, so that a captive portal's page is an error. */

/** The coordinator gave no usable response. */
export class CoordinatorError extends Error {
  override name = 'CoordinatorError';
  constructor(
    /**
     * `unreachable`: a later try may succeed. `invalid_answer`: probably of another server, or another version. `refused`: the coordinator
     * answered with an error.
     */
    readonly kind: 'unreachable' | 'invalid_answer' | 'refused',
    message: string,
    /** Null without a response. */
    readonly status: number | null = null,
  ) {
    super(message);
  }
}

export interface JsonAnswer {
  readonly status: number;
  readonly value: unknown;
  readonly headers: Headers;
}

export interface CoordinatorRequest {
  /** Form fields. With a form, the request is a POST. */
  readonly form?: Readonly<Record<string, string>>;
  readonly token?: string;
  readonly signal?: AbortSignal;
  /** Time limit in milliseconds. Default: 15 s. */
  readonly ms?: number;
}

const ANSWER_MS = 15_000;
const MAX_BYTES = 8 << 20;

/** Converts an address to HTTP, without a trailing slash. Null if invalid. */
export function coordinatorAddress(text: string): string | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  const scheme = { 'http:': 'http:', 'https:': 'https:', 'ws:': 'http:', 'wss:': 'https:' }[url?.protocol ?? ''];
  return url === null || scheme === undefined || url.host === '' ? null : `${scheme}//${url.host}${url.pathname.replace(/\/+$/, '')}`;
}

/** Returns any JSON answer, also of an error. Throws {@link CoordinatorError}, or the signal's reason. */
export async function requestCoordinator(
  address: string,
  path: string,
  { form, token, signal, ms = ANSWER_MS }: CoordinatorRequest = {},
): Promise<JsonAnswer> {
  const deadline = AbortSignal.timeout(ms);
  let response: Response;
  let text: string;
  try {
    response = await fetch(address + path, {
      method: form === undefined ? 'GET' : 'POST',
      headers: { accept: 'application/json', ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
      ...(form === undefined ? {} : { body: new URLSearchParams(form) }),
      // Redirects would send the token to another host.
      redirect: 'manual',
      signal: signal === undefined ? deadline : AbortSignal.any([signal, deadline]),
    });
    text = await boundedText(response);
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof CoordinatorError) throw error;
    const why = deadline.aborted ? 'did not answer in time' : 'cannot be reached';
    throw new CoordinatorError('unreachable', `the coordinator ${address} ${why}`);
  }
  if (response.status >= 300 && response.status < 400) {
    throw new CoordinatorError('invalid_answer', `${address} redirects (status ${response.status}); check the address`, response.status);
  }
  try {
    return { status: response.status, value: JSON.parse(text), headers: response.headers };
  } catch {
    throw new CoordinatorError(
      response.status >= 500 ? 'unreachable' : 'invalid_answer',
      `${address} answered with status ${response.status} and no JSON; check that it is the address of a coordinator`,
      response.status,
    );
  }
}

/** Returns the message of an error response: `error.message`, OAuth's `error_description`, or a sentence with the status. */
export function errorSentence({ status, value }: JsonAnswer): string {
  const { error, error_description } = (value ?? {}) as { error?: unknown; error_description?: unknown };
  const message = typeof error === 'object' && error !== null ? (error as { message?: unknown }).message : error_description;
  return typeof message === 'string' && message !== '' ? message.slice(0, 512) : `the coordinator answered with status ${status}`;
}

async function boundedText(response: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of response.body ?? []) {
    bytes += (part as Uint8Array).length;
    if (bytes > MAX_BYTES) throw new CoordinatorError('invalid_answer', 'the answer of the coordinator is too large');
    parts.push(part as Uint8Array);
  }
  return Buffer.concat(parts).toString('utf8');
}
