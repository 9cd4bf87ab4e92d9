/**
 * `ask`: API client for tests that verifies hash, signature and receipt of every response.
 *
 * Throws {@link BadAnswer} for an unverified response, and for errors that are incomplete or not in the endpoint's format.
 */
import { type Endpoint, fromBase64, type Receipt } from '@inference/protocol';
import { providerIdOf, sha256Hex } from '@inference/protocol/crypto';
import { type ResponseVerdict, verifyResponse, verifyStream } from '@inference/verifier';
import { promptOf, type Script } from './light/script.js';

export type Generating = Exclude<Endpoint, '/v1/messages/count_tokens' | '/v1/embeddings' | '/v1/images/generations'>;
export const ENDPOINTS: readonly Generating[] = ['/v1/chat/completions', '/v1/completions', '/v1/responses', '/v1/messages'];

export interface Access {
  readonly baseUrl: string;
  readonly apiKey: string;
}

export interface Ask {
  readonly model: string;
  readonly endpoint?: Generating;
  readonly stream?: boolean;
  /** Script for a light agent, or a prompt for a real model. */
  readonly prompt?: Script | string;
  readonly maxTokens?: number;
  /** Further members of the request body. */
  readonly more?: Readonly<Record<string, unknown>>;
  readonly signal?: AbortSignal;
  /** Called with null when the headers have arrived, then with each part of the body. */
  readonly onPart?: (part: Uint8Array | null, headers: Headers) => void;
}

export type Answer =
  | {
      readonly kind: 'verified';
      readonly text: string;
      readonly providerId: string;
      readonly receipt: Receipt;
      readonly body: Buffer;
      readonly headers: Headers;
    }
  /** An error response. */
  | { readonly kind: 'refused'; readonly status: number; readonly code: string; readonly retryAfter: number | null }
  /** An error inside a started stream. */
  | { readonly kind: 'broken'; readonly code: string; readonly body: string };

/** Neither a verified answer nor a clear error. */
export class BadAnswer extends Error {}

export function bodyFor({ endpoint = '/v1/chat/completions', model, stream, prompt = 'Hello!', maxTokens, more }: Ask): string {
  const text = typeof prompt === 'string' ? prompt : promptOf(prompt);
  const messages = [{ role: 'user', content: text }];
  const limit = maxTokens === undefined ? {} : { [endpoint === '/v1/responses' ? 'max_output_tokens' : 'max_tokens']: maxTokens };
  const common = { model, ...(stream ? { stream } : {}), ...limit, ...more };
  switch (endpoint) {
    case '/v1/chat/completions':
      return JSON.stringify({ ...common, messages });
    case '/v1/completions':
      return JSON.stringify({ ...common, prompt: text });
    case '/v1/responses':
      return JSON.stringify({ ...common, input: text });
    case '/v1/messages':
      return JSON.stringify({ max_tokens: 512, ...common, messages });
  }
}

/** Sends one request. Rejects with {@link BadAnswer}, or with fetch's error on a broken connection. */
export async function ask({ baseUrl, apiKey }: Access, request: Ask): Promise<Answer> {
  const { endpoint = '/v1/chat/completions', signal, onPart } = request;
  const response = await fetch(baseUrl + endpoint, {
    method: 'POST',
    headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
    body: bodyFor(request),
    ...(signal === undefined ? {} : { signal }),
  });
  onPart?.(null, response.headers);
  const parts: Uint8Array[] = [];
  for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) {
    parts.push(part);
    onPart?.(part, response.headers);
  }
  return judge(response, Buffer.concat(parts), request);
}

export function judge(response: Pick<Response, 'status' | 'headers'>, body: Buffer, request: Ask): Answer {
  const { endpoint = '/v1/chat/completions', stream = false } = request;
  const { status, headers } = response;
  if (status !== 200) {
    const code = errorCode(endpoint, parseJson(body.toString()), headers);
    const retryAfter = headers.get('retry-after');
    return { kind: 'refused', status, code, retryAfter: retryAfter === null ? null : Number(retryAfter) };
  }
  const publicKey = headers.get('x-attestation-se-public-key') ?? '';
  const providerId = headers.get('x-provider-id') ?? '';
  if (providerIdOf(fromBase64(publicKey)) !== providerId) throw new BadAnswer('the key is not that of the provider');
  const requestSha256 = sha256Hex(Buffer.from(bodyFor(request)));
  const trusted = { publicKey, expected: { model: request.model, requestSha256 } };
  const isStream = (headers.get('content-type') ?? '').startsWith('text/event-stream');
  if (isStream !== stream) throw new BadAnswer(`a ${isStream ? 'stream' : 'whole answer'} that was not asked for`);
  if (stream) {
    const events = eventsOf(body.toString());
    const error = events.map((event) => streamErrorCode(endpoint, event)).find((code) => code !== null);
    if (error !== undefined && error !== null) {
      if (/se_signature|\[DONE\]/.test(body.toString())) throw new BadAnswer('an error in a stream that ends as if it were whole');
      return { kind: 'broken', code: error, body: body.toString() };
    }
    const receipt = receiptOf(verifyStream(body, trusted), body);
    return { kind: 'verified', text: events.map((event) => deltaOf(endpoint, event)).join(''), providerId, receipt, body, headers };
  }
  const receipt = receiptOf(verifyResponse({ body, headers, ...trusted }), body);
  return { kind: 'verified', text: wholeText(endpoint, parseJson(body.toString())), providerId, receipt, body, headers };
}

function receiptOf({ verified, checks, receipt }: ResponseVerdict, body: Buffer): Receipt {
  if (verified && receipt !== null) return receipt;
  const failed = checks.filter(({ result }) => result !== 'ok').map(({ explanation }) => explanation);
  throw new BadAnswer(`not verified: ${failed.join(' ')} The last bytes: ${JSON.stringify(body.subarray(-200).toString())}`);
}

/** The code, or in the Messages format the type, of a whole error answer. */
function errorCode(endpoint: Generating, value: Json, headers: Headers): string {
  if (!(headers.get('content-type') ?? '').startsWith('application/json')) throw new BadAnswer('an error that is no JSON');
  const error = field(value, 'error');
  const shown = field(error, endpoint === '/v1/messages' ? 'type' : 'code');
  if (endpoint === '/v1/messages' && field(value, 'type') !== 'error') throw new BadAnswer('an error of another format');
  if (typeof shown !== 'string' || typeof field(error, 'message') !== 'string') throw new BadAnswer('an error without its members');
  return shown;
}

interface Event {
  readonly type: string | null;
  readonly data: Json;
}

function eventsOf(text: string): Event[] {
  return text
    .split('\n\n')
    .filter((block) => block !== '' && !block.startsWith(':'))
    .map((block) => {
      const lines = block.split('\n');
      const data = lines.find((line) => line.startsWith('data: '))?.slice(6) ?? '';
      const type = lines.find((line) => line.startsWith('event: '))?.slice(7) ?? null;
      // An event that the provider did not finish has no valid JSON; an error event must follow.
      return { type, data: data === '[DONE]' ? null : parseJson(data, null) };
    });
}

function streamErrorCode(endpoint: Generating, { type, data }: Event): string | null {
  const error = field(data, 'error');
  if (endpoint === '/v1/chat/completions' || endpoint === '/v1/completions') {
    return type === null && isObject(error) ? String(field(error, 'code')) : null;
  }
  if (type !== 'error') return null;
  if (field(data, 'type') !== 'error' || typeof field(error, 'message') !== 'string')
    throw new BadAnswer('an error event without its members');
  return String(field(error, endpoint === '/v1/messages' ? 'type' : 'code'));
}

function deltaOf(endpoint: Generating, { data }: Event): string {
  const text = ((): Json => {
    switch (endpoint) {
      case '/v1/chat/completions':
        return field(field(field(field(data, 'choices'), 0), 'delta'), 'content');
      case '/v1/completions':
        return field(field(field(data, 'choices'), 0), 'text');
      case '/v1/responses':
        return field(data, 'type') === 'response.output_text.delta' ? field(data, 'delta') : '';
      case '/v1/messages':
        return field(data, 'type') === 'content_block_delta' ? field(field(data, 'delta'), 'text') : '';
    }
  })();
  return typeof text === 'string' ? text : '';
}

function wholeText(endpoint: Generating, value: Json): string {
  switch (endpoint) {
    case '/v1/chat/completions':
      return String(field(field(field(field(value, 'choices'), 0), 'message'), 'content'));
    case '/v1/completions':
      return String(field(field(field(value, 'choices'), 0), 'text'));
    case '/v1/responses':
      return String(field(field(field(field(field(value, 'output'), 0), 'content'), 0), 'text'));
    case '/v1/messages':
      return String(field(field(field(value, 'content'), 0), 'text'));
  }
}

type Json = unknown;

function isObject(value: Json): value is Record<string | number, unknown> {
  return typeof value === 'object' && value !== null;
}

function field(value: Json, name: string | number): Json {
  return isObject(value) ? value[name] : undefined;
}

function parseJson(text: string, otherwise?: null): Json {
  try {
    return JSON.parse(text);
  } catch {
    if (otherwise === null) return null;
    throw new BadAnswer(`not JSON: ${text.slice(0, 200)}`);
  }
}
