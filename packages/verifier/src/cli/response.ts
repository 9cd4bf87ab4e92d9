/**
 * `inference-verify response`: verifies an answer with its provider's attestation record.
 *
 * Requests a new answer, or reads an answer that `verify-response.sh --save` saved.
 */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { MAX_IMAGES, type Receipt, toPrintable } from '@inference/protocol';
import { ENCLAVE_EVIDENCE_TEXT } from '../record/finding.js';
import { type AnswerVerdict, imagesIn, verifyAnswer } from '../verify-answer.js';
import { type Command, type Report, readArguments, UnavailableError, UsageError, weightsHashOf } from './command.js';
import { baseAddress, download, downloadJson, readBytes, readJson, readText } from './download.js';
import { downloadFeed, NOT_PROVED, orUnavailable } from './network.js';

interface Answer {
  readonly body: Uint8Array;
  /** Lower-case names. */
  readonly headers: ReadonlyMap<string, string>;
  readonly request: Uint8Array;
  readonly nonce: string | null;
  /** Null: not saved. */
  readonly endpoint: string | null;
  /** Fetched from the URLs in the answer; null: not fetched. */
  readonly images: readonly Uint8Array[] | null;
  readonly feed: unknown;
  /** Whether the answer and its feed come from a directory. */
  readonly isSaved: boolean;
}

const OPTIONS = {
  from: { type: 'string' },
  'base-url': { type: 'string' },
  key: { type: 'string' },
  path: { type: 'string' },
  data: { type: 'string' },
  stream: { type: 'boolean' },
  'weights-sha256': { type: 'string' },
  require: { type: 'string' },
} as const;

/** Large models on slow machines need minutes. */
const ANSWER_TIMEOUT_MS = 600_000;

const IMAGES_PATH = '/v1/images/generations';

/** The last time that ECMAScript dates support. */
const LAST_TIME_MS = 8.64e15;

export const responseCommand: Command = {
  usage:
    'response --from DIR | --base-url URL --key KEY [--path /v1/...] [--data JSON] [--stream] [--weights-sha256 HASH] [--require self_signed|hardware]',
  summary:
    'Ask for an answer (the key may also stand in INFERENCE_API_KEY), or read a saved one, and verify bytes, signature, receipt and provider. Simulated machines verify too and are named as such; --require self_signed refuses those, --require hardware also machines without a certificate from their manufacturer.',
  async run(args) {
    const { text, flag, positional } = readArguments(args, OPTIONS);
    if (positional !== null) throw new UsageError(`${JSON.stringify(positional)} is not an option of response`);
    const required = requirementOf(text('require'));
    const from = text('from');
    const answer =
      from === null
        ? await sendRequest({
            base: baseAddress(text('base-url')),
            key: text('key') ?? process.env.INFERENCE_API_KEY ?? '',
            path: text('path') ?? '/v1/chat/completions',
            data: text('data'),
            stream: flag('stream'),
          })
        : await savedAnswer(from);
    return report(answer, { required, weightsSha256: weightsHashOf(text('weights-sha256')) });
  },
};

interface RequestToSend {
  readonly base: string;
  readonly key: string;
  readonly path: string;
  /** Body; null: a short default request. */
  readonly data: string | null;
  readonly stream: boolean;
}

async function sendRequest({ base, key, path, data, stream }: RequestToSend): Promise<Answer> {
  if (key === '') throw new UsageError('response needs --key KEY');
  const authorization = { authorization: `Bearer ${key}` };
  const request = data ?? JSON.stringify(await defaultRequest(base, path, authorization, stream));
  const nonce = randomBytes(32).toString('base64url');
  const headers = { ...authorization, 'content-type': 'application/json', 'x-inference-nonce': nonce };
  const response = await download(base + path, { method: 'POST', headers, body: request, timeoutMs: ANSWER_TIMEOUT_MS });
  if (response.status !== 200) {
    const body = toPrintable(new TextDecoder().decode(response.body).slice(0, 400));
    throw new UnavailableError(`${base}${path} answered ${response.status}: ${body}`);
  }
  const { body } = response;
  const images = path === IMAGES_PATH ? await fetchImages(body) : null;
  const feed = await downloadFeed(base);
  const sent = { request: new TextEncoder().encode(request), endpoint: path, nonce };
  return { ...sent, body, headers: new Map(response.headers), images, feed, isSaved: false };
}

/** Fetches the images of an answer from their URLs; null: the answer has no URLs. */
async function fetchImages(body: Uint8Array): Promise<Uint8Array[] | null> {
  const urls = imagesIn(body)?.urls;
  if (urls === undefined) return null;
  return Promise.all(
    urls.slice(0, MAX_IMAGES).map(async (url) => {
      const image = await download(baseAddress(url), {});
      if (image.status !== 200) throw new UnavailableError(`${toPrintable(url)} answered ${image.status}`);
      return image.body;
    }),
  );
}

interface ModelList {
  readonly data?: readonly { readonly id?: unknown; readonly metadata?: { readonly model_type?: unknown } }[];
}

/** Request with a short prompt for the first listed model of the endpoint's type. */
async function defaultRequest(base: string, path: string, headers: Record<string, string>, stream: boolean): Promise<object> {
  const list = (await downloadJson(`${base}/v1/models`, headers)) as ModelList;
  const type = path === IMAGES_PATH ? 'image' : path === '/v1/embeddings' ? 'embedding' : 'text';
  const model = list.data?.find(({ metadata }) => metadata?.model_type === type)?.id;
  if (typeof model !== 'string') throw new UnavailableError(`${base} serves no ${type} model at the moment`);
  const shared = { model, ...(stream ? { stream: true } : {}) };
  if (path === '/v1/completions') return { ...shared, prompt: 'Once upon a time', max_tokens: 32 };
  if (path === '/v1/responses') return { ...shared, input: 'Say hello.', max_output_tokens: 32 };
  if (path === IMAGES_PATH) return { ...shared, prompt: 'a red circle on a blue background', size: 'auto' };
  if (path === '/v1/embeddings') return { ...shared, input: 'Once upon a time' };
  return { ...shared, messages: [{ role: 'user', content: 'Say hello.' }], max_tokens: 32 };
}

async function savedAnswer(directory: string): Promise<Answer> {
  const [body, headers, request, feed] = await Promise.all([
    readBytes(join(directory, 'body.bin')),
    readText(join(directory, 'headers.txt')),
    readBytes(join(directory, 'request.json')),
    readJson(join(directory, 'attestation.json')),
  ]);
  const nonce = (await readText(join(directory, 'nonce.txt')).catch(() => null))?.trim() ?? null;
  const path = (await readText(join(directory, 'path.txt')).catch(() => null))?.trim() ?? null;
  const images = await savedImages(directory);
  return { body, headers: headersIn(headers), request, endpoint: path, nonce, images, feed, isSaved: true };
}

/** Files `image-1.bin` and so on, as saved by `verify-response.sh --save`; null: none. */
async function savedImages(directory: string): Promise<Uint8Array[] | null> {
  const images: Uint8Array[] = [];
  for (let number = 1; number <= MAX_IMAGES; number++) {
    const image = await readBytes(join(directory, `image-${number}.bin`)).catch(() => null);
    if (image === null) break;
    images.push(image);
  }
  return images.length === 0 ? null : images;
}

/** Headers of the last response in output of `curl -D`. */
function headersIn(text: string): Map<string, string> {
  const headers = new Map<string, string>();
  for (const line of text.split(/\r?\n/)) {
    if (line.startsWith('HTTP/')) headers.clear();
    const colon = line.indexOf(':');
    if (colon > 0) headers.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim());
  }
  return headers;
}

/** Values of `--require`: minimum evidence for the provider's hardware. */
const LEVELS = ['self_signed', 'hardware'] as const;
type Requirement = (typeof LEVELS)[number];

function requirementOf(text: string | null): Requirement | null {
  const found = LEVELS.find((level) => level === text) ?? null;
  if (text !== null && found === null) throw new UsageError(`--require must be ${LEVELS.join(' or ')}, not ${JSON.stringify(text)}`);
  return found;
}

interface Requirements {
  readonly required: Requirement | null;
  readonly weightsSha256: string | null;
}

function report(answer: Answer, { required, weightsSha256 }: Requirements): Report {
  const { body, request, endpoint, nonce, images, feed } = answer;
  const headers = Object.fromEntries(answer.headers);
  const received = {
    body,
    headers,
    request,
    endpoint,
    nonce,
    feed,
    ...(images === null ? {} : { images }),
    ...(weightsSha256 === null ? {} : { weightsSha256 }),
    ...(required === 'hardware' ? { acceptedAnchors: 'maker' as const } : {}),
  };
  const verdict = orUnavailable(() => verifyAnswer(received, answer.isSaved ? 'receipt' : Date.now()));
  const { checks, record, enclave, receipt } = verdict;
  const isRequiredMet = required === null || meetsRequirement(required, verdict);
  const verified = verdict.verified && isRequiredMet;
  const lines = checks.map(({ result, name, explanation }) => line(result === 'ok', name, explanation));
  if (required !== null) lines.push(line(isRequiredMet, 'required_evidence', requirementText(required, isRequiredMet)));
  const notes = [
    ...(answer.isSaved && receipt !== null ? [asOfText(receipt.completed_at)] : []),
    ...(imagesIn(body)?.urls !== undefined && images === null ? ['Not checked: the images behind the URLs; they were not kept.'] : []),
  ];
  return {
    verified,
    text: [
      verified ? 'verified' : 'NOT VERIFIED',
      ...(enclave === null ? [] : [ENCLAVE_EVIDENCE_TEXT[enclave]]),
      ...lines,
      '',
      ...computationText(receipt),
      ...notes,
      NOT_PROVED,
    ].join('\n'),
    json: {
      verified,
      checks,
      receipt,
      provider: record,
      enclave_evidence: enclave,
      unsupported_headers: verdict.unsupportedHeaders,
      ...(required === null ? {} : { required, required_met: isRequiredMet }),
    },
  };
}

/** Engine, weights and sampling as the receipt claims them. */
function computationText(receipt: Receipt | null): string[] {
  if (receipt?.engine === undefined) return [];
  const { engine, weights_sha256, template_sha256, sampling } = receipt;
  return [
    `Claimed by the machine in the signed receipt: engine ${toPrintable(engine)}`,
    `  weights   ${weights_sha256 ?? 'not reported'}`,
    ...(template_sha256 === undefined ? [] : [`  template  ${template_sha256}`]),
    ...(sampling === undefined
      ? []
      : [
          `  sampling  ${Object.entries(sampling)
            .map(([name, value]) => `${name}=${value}`)
            .join(' ')}`,
        ]),
    '',
  ];
}

function meetsRequirement(required: Requirement, { enclave, published }: AnswerVerdict): boolean {
  if (required === 'self_signed') return enclave === 'claimed' || enclave === 'certified';
  return enclave === 'certified' && published?.trust_level === 'hardware';
}

function requirementText(required: Requirement, isMet: boolean): string {
  const what = required === 'hardware' ? 'certified by its manufacturer and at trust level hardware' : 'other than a simulation';
  return `The machine must be ${what}. It ${isMet ? 'is' : 'is not'}.`;
}

function asOfText(ms: number): string {
  return `The record was verified as of the time that the receipt states: ${new Date(Math.min(ms, LAST_TIME_MS)).toISOString()}.`;
}

function line(ok: boolean, name: string, explanation: string): string {
  return `  ${ok ? 'ok    ' : 'FAILED'}  ${name.padEnd(20)}  ${toPrintable(explanation)}`;
}
