/** `readInput`: recognises what the user entered: a record or feed, a receipt, or a response with headers (output of `curl -i`). Pure. */

export interface HttpAnswer {
  /** Names are in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  /** Exact bytes after the headers. */
  readonly body: Uint8Array;
  readonly isStream: boolean;
}

export type VerifyInput =
  | { readonly kind: 'record'; readonly value: unknown }
  | { readonly kind: 'receipt'; readonly value: unknown }
  | { readonly kind: 'answer'; readonly answer: HttpAnswer };

/** Error of input that cannot be verified. The message is for the user. */
export class InputError extends Error {}

/** Returns the recognised kind and content. Does not verify or validate members. Throws {@link InputError} for unusable input. */
export function readInput(bytes: Uint8Array): VerifyInput {
  const text = new TextDecoder().decode(bytes);
  const start = text.trimStart();
  if (start === '') throw new InputError('The input is empty.');
  if (/^HTTP\//.test(start)) return { kind: 'answer', answer: httpAnswer(bytes.subarray(bytes.findIndex((byte) => byte > SPACE))) };
  if (/^[<>*] /.test(start))
    throw new InputError('This is output of curl -v, which marks every line. Request the answer again with curl -i.');
  if (/^(?:data:|event:|:)/.test(start))
    throw new InputError(`This is a stream without its headers, which name the machine. ${WITH_HEADERS}`);
  const value = jsonOf(start);
  if (isObject(value)) {
    if (Object.hasOwn(value, 'receipt') || value.object === 'inference.receipt') return { kind: 'receipt', value };
    if (isObject(value.error)) throw new InputError('This is an error message. Machines sign answers only.');
    if (isAnswerBody(value)) throw new InputError(`This is an answer without its headers, which hold the signature. ${WITH_HEADERS}`);
  }
  return { kind: 'record', value };
}

/** Copy of the protocol package's `E2E_RESPONSE_CONTENT_TYPE`. The package is too large to load with the page. */
const SEALED_ANSWER = 'application/vnd.inference.sealed-response';
const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;

const WITH_HEADERS = 'Request it again with curl -i, and paste everything that curl prints.';

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new InputError(
      'The input is not JSON, and does not start with “HTTP/” as an answer with its headers does. Copy the whole text, from its first character to its last.',
    );
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether a value looks like a response body: chat, completions, messages, responses, embeddings or images. */
function isAnswerBody(value: Readonly<Record<string, unknown>>): boolean {
  return ['choices', 'content', 'output', 'data'].some((member) => Array.isArray(value[member]));
}

function httpAnswer(bytes: Uint8Array): HttpAnswer {
  const { head, body } = splitHead(bytes);
  // curl also prints interim responses, such as 100 Continue, and redirects. Only the last response is used.
  if (startsWithStatusLine(body)) return httpAnswer(body);
  const [statusLine = '', ...lines] = head.split(/\r?\n/);
  const status = Number(/^HTTP\/[\d.]+ (\d{3})/.exec(statusLine)?.[1] ?? Number.NaN);
  if (Number.isNaN(status)) throw new InputError(`The first line is no status line of HTTP: “${statusLine.slice(0, 80)}”.`);
  const headers = headersOf(lines);
  if (status !== 200) throw new InputError(`This is an answer with status ${status}. Machines sign answers with status 200 only.`);
  const contentType = headers.get('content-type') ?? '';
  if (contentType.startsWith(SEALED_ANSWER)) {
    throw new InputError(
      'This is a sealed answer of end-to-end mode. Only the client that sealed the request can open and verify it. Its receipt can be verified here: GET /v1/receipts/{job_id}.',
    );
  }
  if ((headers.get('x-provider-id') ?? '') === '') throw new InputError('The header X-Provider-Id is missing, so no machine is named.');
  if (body.length === 0) throw new InputError('There are headers, but no body. An empty line must separate the two.');
  return { headers, body, isStream: contentType.startsWith('text/event-stream') };
}

function startsWithStatusLine(bytes: Uint8Array): boolean {
  return /^HTTP\/[\d.]+ \d{3}/.test(new TextDecoder().decode(bytes.subarray(0, 16)));
}

/** Splits at the first empty line. Without one, the body is empty. */
function splitHead(bytes: Uint8Array): { readonly head: string; readonly body: Uint8Array } {
  const decode = (end: number): string => new TextDecoder().decode(bytes.subarray(0, end));
  for (let at = bytes.indexOf(LF); at !== -1; at = bytes.indexOf(LF, at + 1)) {
    const next = bytes[at + 1] === CR ? at + 2 : at + 1;
    if (bytes[next] === LF) return { head: decode(at).trimEnd(), body: bytes.subarray(next + 1) };
  }
  return { head: decode(bytes.length).trimEnd(), body: new Uint8Array() };
}

function headersOf(lines: readonly string[]): ReadonlyMap<string, string> {
  const headers = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(':');
    if (colon <= 0) throw new InputError(`This line between status and body is no header: “${line.slice(0, 80)}”.`);
    headers.set(line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim());
  }
  return headers;
}
