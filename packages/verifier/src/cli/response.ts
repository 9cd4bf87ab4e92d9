/**
 * `inference-verify response`: verifies an answer, one it asks for itself or one that was kept (by `verify-response.sh --save`),
 * together with the record of the provider that is said to have made it.
 */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { Receipt } from '@inference/protocol';
import { sha256Hex } from '../digest.js';
import { unsupportedHeaders } from '../provider-headers.js';
import type { Finding } from '../record/finding.js';
import { verifyResponse, verifyStream } from '../verify-response.js';
import { type Command, hashOf, printable, type Report, readArguments, UnavailableError, UsageError } from './command.js';
import { baseAddress, download, downloadJson, readBytes, readJson, readText } from './download.js';
import { downloadFeed, judge, NOT_PROVED, recordsOf } from './network.js';

interface Answer {
  readonly body: Uint8Array;
  /** Lower-case names. */
  readonly headers: ReadonlyMap<string, string>;
  readonly request: Uint8Array;
  readonly nonce: string | null;
  readonly feed: unknown;
  /** From before, and its feed with it. */
  readonly kept: boolean;
}

const OPTIONS = {
  from: { type: 'string' },
  'base-url': { type: 'string' },
  key: { type: 'string' },
  path: { type: 'string' },
  data: { type: 'string' },
  stream: { type: 'boolean' },
  'weights-sha256': { type: 'string' },
} as const;

/** Large models on slow machines take their time. */
const ANSWER_TIMEOUT_MS = 600_000;

/** Of the calendar that ECMAScript knows. */
const LAST_TIME_MS = 8.64e15;

export const responseCommand: Command = {
  usage: 'response --from DIR | --base-url URL --key KEY [--path /v1/...] [--data JSON] [--stream] [--weights-sha256 HASH]',
  summary:
    'Ask for an answer (the key may also stand in INFERENCE_API_KEY), or take a kept one, and verify bytes, signature, receipt and provider.',
  async run(args) {
    const { text, flag, positional } = readArguments(args, OPTIONS);
    if (positional !== null) throw new UsageError(`${JSON.stringify(positional)} is not an option of response`);
    const from = text('from');
    const answer =
      from === null
        ? await ask({
            base: baseAddress(text('base-url')),
            key: text('key') ?? process.env.INFERENCE_API_KEY ?? '',
            path: text('path') ?? '/v1/chat/completions',
            data: text('data'),
            stream: flag('stream'),
          })
        : await kept(from);
    return report(answer, hashOf(text('weights-sha256')));
  },
};

async function ask(what: { base: string; key: string; path: string; data: string | null; stream: boolean }): Promise<Answer> {
  if (what.key === '') throw new UsageError('response needs --key KEY');
  const authorization = { authorization: `Bearer ${what.key}` };
  const request = what.data ?? JSON.stringify(await question(what.base, what.path, authorization, what.stream));
  const nonce = randomBytes(32).toString('base64url');
  const headers = { ...authorization, 'content-type': 'application/json', 'x-inference-nonce': nonce };
  const response = await download(what.base + what.path, { method: 'POST', headers, body: request, timeoutMs: ANSWER_TIMEOUT_MS });
  if (response.status !== 200) {
    const said = printable(new TextDecoder().decode(response.body).slice(0, 400));
    throw new UnavailableError(`${what.base}${what.path} answered ${response.status}: ${said}`);
  }
  const feed = await downloadFeed(what.base);
  return { body: response.body, headers: new Map(response.headers), request: new TextEncoder().encode(request), nonce, feed, kept: false };
}

interface ModelList {
  readonly data?: readonly { readonly id?: unknown; readonly metadata?: { readonly model_type?: unknown } }[];
}

/** A short question for the first model in the list that the endpoint is for. */
async function question(base: string, path: string, headers: Record<string, string>, stream: boolean): Promise<object> {
  const list = (await downloadJson(`${base}/v1/models`, headers)) as ModelList;
  const type = path === '/v1/images/generations' ? 'image' : path === '/v1/embeddings' ? 'embedding' : 'text';
  const model = list.data?.find(({ metadata }) => metadata?.model_type === type)?.id;
  if (typeof model !== 'string') throw new UnavailableError(`${base} serves no ${type} model at the moment`);
  const shared = { model, ...(stream ? { stream: true } : {}) };
  if (path === '/v1/completions') return { ...shared, prompt: 'Once upon a time', max_tokens: 32 };
  if (path === '/v1/responses') return { ...shared, input: 'Say hello.', max_output_tokens: 32 };
  if (path === '/v1/images/generations') return { ...shared, prompt: 'a red circle on a blue background', size: 'auto' };
  if (path === '/v1/embeddings') return { ...shared, input: 'Once upon a time' };
  return { ...shared, messages: [{ role: 'user', content: 'Say hello.' }], max_tokens: 32 };
}

async function kept(directory: string): Promise<Answer> {
  const [body, headers, request, feed] = await Promise.all([
    readBytes(join(directory, 'body.bin')),
    readText(join(directory, 'headers.txt')),
    readBytes(join(directory, 'request.json')),
    readJson(join(directory, 'attestation.json')),
  ]);
  const nonce = await readText(join(directory, 'nonce.txt')).catch(() => null);
  return { body, headers: headersIn(headers), request, nonce, feed, kept: true };
}

/** Headers of the last answer in what `curl -D` wrote. */
function headersIn(text: string): Map<string, string> {
  const headers = new Map<string, string>();
  for (const line of text.split(/\r?\n/)) {
    if (line.startsWith('HTTP/')) headers.clear();
    const colon = line.indexOf(':');
    if (colon > 0) headers.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim());
  }
  return headers;
}

function report(answer: Answer, weightsSha256: string | null): Report {
  const providerId = answer.headers.get('x-provider-id') ?? '';
  const published = recordsOf(answer.feed).find((each) => each.provider_id === providerId);
  const header = answer.headers.get('x-attestation-se-public-key') ?? '';
  const jobId = answer.headers.get('x-inference-job-id');
  const expected = {
    requestSha256: sha256Hex(answer.request),
    requestBytes: answer.request.length,
    ...(answer.nonce === null ? {} : { nonce: answer.nonce.trim() }),
    ...(jobId === undefined ? {} : { jobId }),
    ...(weightsSha256 === null ? {} : { weightsSha256 }),
  };
  const headers = Object.fromEntries(answer.headers);
  const trusted = { publicKey: published?.se_public_key ?? header, expected };
  const streamed = (answer.headers.get('content-type') ?? '').startsWith('text/event-stream');
  const verdict = streamed ? verifyStream(answer.body, trusted) : verifyResponse({ body: answer.body, headers, ...trusted });
  // Evidence that was kept was fresh when the answer was made, at a time that the enclave signed.
  const asOf = answer.kept ? verdict.receipt?.completed_at : undefined;
  const { records } = judge(answer.feed, asOf);
  const record = records.find((each) => each.providerId === providerId);
  const inFeed = published?.se_public_key === header;
  const unsupported = published === undefined ? [] : unsupportedHeaders(headers, published);
  const consistent = record?.consistent ?? false;
  const lines = [
    ...verdict.checks.map((check) => line(check.result === 'ok', check.name, check.explanation)),
    line(
      inFeed,
      'provider_key',
      inFeed ? 'The public feed names this key for this provider.' : 'The public feed does not name this key for this provider.',
    ),
    line(
      consistent,
      'provider_record',
      consistent ? "No claim in the provider's record is contradicted." : `${contradictions(record?.findings ?? [])}`,
    ),
    line(
      unsupported.length === 0,
      'provider_headers',
      unsupported.length === 0
        ? 'The headers say no more of the provider than its record.'
        : `The record does not bear out ${unsupported.join(', ')}.`,
    ),
  ];
  const verified = verdict.verified && inFeed && consistent && unsupported.length === 0;
  return {
    verified,
    text: [
      verified ? 'verified' : 'NOT VERIFIED',
      ...lines,
      '',
      ...computationText(verdict.receipt),
      ...(asOf === undefined ? [] : [asOfText(asOf)]),
      NOT_PROVED,
    ].join('\n'),
    json: { verified, checks: verdict.checks, receipt: verdict.receipt, provider: record ?? null, unsupported_headers: unsupported },
  };
}

/** What the machine says that it computed with. */
function computationText(receipt: Receipt | null): string[] {
  if (receipt?.engine === undefined) return [];
  const { engine, weights_sha256, template_sha256, sampling } = receipt;
  return [
    `By the word of the machine, in the signed receipt: engine ${printable(engine)}`,
    `  weights   ${weights_sha256 ?? 'not told'}`,
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

function contradictions(findings: readonly Finding[]): string {
  const claims = findings.filter((finding) => finding.result === 'contradicted').map(({ claim }) => claim);
  return claims.length === 0 ? 'The provider is not in the feed.' : `Contradicted: ${claims.join(', ')}.`;
}

function asOfText(ms: number): string {
  return `The record was judged as of the time that the receipt states: ${new Date(Math.min(ms, LAST_TIME_MS)).toISOString()}.`;
}

function line(ok: boolean, name: string, explanation: string): string {
  return `  ${ok ? 'ok    ' : 'FAILED'}  ${name.padEnd(20)}  ${printable(explanation)}`;
}
