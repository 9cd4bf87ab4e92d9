/** Verifies a saved response or receipt against the machine's attestation record. The report also lists checks that could not run. */
import type { AttestationFeed, EnclaveEvidence, Receipt } from '@inference/protocol';
import {
  type AnswerVerdict,
  type Check,
  imagesIn,
  type ProviderReceiptVerdict,
  type SavedReceipt,
  sha256Hex,
  verifyAnswer,
  verifyReceiptInFeed,
} from '@inference/verifier';
import { answerLimits } from '../../../features/trust/answer-limits.js';
import type { AnswerReportProps } from '../../../features/trust/answer-report.js';
import type { CheckLine } from '../../../features/trust/check-line.js';
import { TRUST_LEVELS } from '../../../features/trust/labels.js';
import { VERDICT_OF_EVIDENCE, type Verdict } from '../../../features/trust/verdicts.js';
import { formatCount } from '../../../ui/display/figures.js';
import type { HttpAnswer } from './read-input.js';

interface SavedAnswer {
  readonly answer: HttpAnswer;
  /** Request body, empty if unknown. */
  readonly request: string;
  /** Whether the answer was pasted, which may change white space at the end of its body. */
  readonly isPasted: boolean;
  /** Feed with the attestation record of the machine that `X-Provider-Id` names. Has no record if the machine is not connected. */
  readonly feed: AttestationFeed;
}

/** Returns the report. `now` in milliseconds. Throws `FeedError` for an invalid feed. */
export function evaluateSavedAnswer({ answer, request, isPasted, feed }: SavedAnswer, now: number): AnswerReportProps {
  const headers = Object.fromEntries(answer.headers);
  const body = isPasted ? restoredBody(answer) : answer.body;
  const verify = (sent: Uint8Array | null): AnswerVerdict =>
    verifyAnswer({ body, headers, request: sent, endpoint: null, nonce: null, feed }, now);
  const verdict = request.trim() === '' ? verify(null) : verifyRequest(request, verify);
  const { receipt, published, enclave, record } = verdict;
  const isHashWrong = verdict.checks.some(({ name, result }) => name === 'response_hash' && result === 'failed');
  const checks = published === null ? withoutRecord(verdict, headers['x-provider-id']) : verdict.checks;
  return {
    ...resultOf(checks, published === null ? null : enclave, 'answer'),
    facts: [
      { label: 'Machine', value: machineOf(published?.chip_name ?? answer.headers.get('x-provider-chip') ?? 'unknown', enclave) },
      { label: 'Provider ID', value: answer.headers.get('x-provider-id') ?? '' },
      ...levelOf(published?.trust_level, record?.enclave ?? null),
      ...(receipt === null ? [] : receiptFacts(receipt)),
    ],
    notChecked: [
      ...(published === null ? [NOT_CONNECTED] : []),
      ...(request.trim() === '' ? ['That the answer belongs to your request: paste the request body too.'] : []),
      ...(receipt === null ? [] : [toCompare(receipt)]),
      ...(imagesIn(body)?.urls === undefined ? [] : ['The images behind the URLs, which are not part of this text.']),
      ...(isHashWrong && isPasted
        ? ['Bytes that pasting may have changed. Save the answer with curl -i -o answer.txt and choose the file.']
        : []),
    ],
    notProved: answerLimits(enclave),
  };
}

/** Returns the report. `now` in milliseconds. Throws `FeedError` for an invalid feed. */
export function evaluateSavedReceipt(
  { saved, request, feed }: { readonly saved: SavedReceipt; readonly request: string; readonly feed: AttestationFeed },
  now: number,
): AnswerReportProps {
  const verdict = verifyReceiptInFeed(saved, feed, now);
  const { claims, published, record } = verdict;
  if (published === null) {
    return {
      verdict: 'unverified',
      about: 'The public key of the machine in this receipt is not available, so nothing was checked.',
      facts: [],
      lines: [],
      notChecked: [NOT_CONNECTED],
      notProved: [],
    };
  }
  const sent = claims?.mode === 'plain' ? requestLine(request, claims.receipt) : [];
  const enclave = record?.enclave ?? null;
  return {
    ...resultOf([...verdict.checks, ...sent], enclave, 'receipt'),
    facts: [
      { label: 'Machine', value: machineOf(published.chip_name, enclave) },
      { label: 'Provider ID', value: published.provider_id },
      ...levelOf(published.trust_level, enclave),
      ...(claims === null
        ? []
        : [{ label: 'Mode', value: claims.mode === 'plain' ? 'Plain' : 'End-to-end' }, ...receiptFacts(claims.receipt)]),
    ],
    notChecked: claims === null ? [] : uncheckedOfReceipt(claims, sent.length > 0),
    notProved: answerLimits(enclave, claims?.mode),
  };
}

const NOT_CONNECTED =
  'The machine: it is not connected now, so its record is not published. Whether the key belongs to a verified machine is open.';

/** Text about members of the receipt that only the sender of the request can compare. */
function toCompare({ endpoint, client_nonce: nonce }: Receipt): string {
  return nonce === undefined
    ? `The endpoint: compare ${endpoint} with the path that you called.`
    : `The endpoint and the nonce: compare ${endpoint} and ${nonce} with the path that you called and the X-Inference-Nonce that you sent.`;
}

/** Checks that need the attestation record. */
const NEEDS_RECORD: ReadonlySet<string> = new Set(['provider_key', 'provider_record', 'provider_headers']);

/**
 * Checks for a response whose record is missing. `receipt_key` still proves that the response's key belongs to the provider id in the
 * receipt, so an additional check compares that id with the header.
 */
function withoutRecord({ checks, receipt }: AnswerVerdict, providerId: string | undefined): readonly Check[] {
  const possible = checks.filter(({ name }) => !NEEDS_RECORD.has(name));
  if (receipt === null || receipt.provider_id === providerId) return possible;
  return [
    ...possible,
    { name: 'provider_headers', result: 'failed', explanation: 'The header X-Provider-Id names another provider than the receipt.' },
  ];
}

type Result = Pick<AnswerReportProps, 'verdict' | 'about' | 'lines'>;

/** `enclave` null: no attestation record of the machine was verified. */
function resultOf(checks: readonly Check[], enclave: EnclaveEvidence | null, what: 'answer' | 'receipt'): Result {
  const lines: CheckLine[] = checks.map(({ result, explanation }) => ({ ok: result === 'ok', text: explanation }));
  if (lines.some(({ ok }) => !ok)) return { verdict: 'failed', about: `Do not rely on this ${what}: at least one check failed.`, lines };
  if (enclave === null) {
    const about = `The signatures match the key in the ${what}, but no attestation record confirms the key.`;
    return { verdict: 'unverified', about, lines };
  }
  const verdict: Verdict = VERDICT_OF_EVIDENCE[enclave];
  return { verdict, about: `The ${what} was signed by the key in the attestation record of its machine.`, lines };
}

function machineOf(chip: string, enclave: EnclaveEvidence | null): string {
  return enclave === 'simulated' ? `${chip} (simulated)` : chip;
}

function levelOf(level: keyof typeof TRUST_LEVELS | undefined, enclave: EnclaveEvidence | null): AnswerReportProps['facts'] {
  if (level === undefined) return [];
  return [{ label: 'Trust level', value: `${TRUST_LEVELS[level].label}${enclave === 'simulated' ? ', simulated' : ''}` }];
}

type AnyReceipt = NonNullable<ProviderReceiptVerdict['claims']>['receipt'];

/** Facts from the receipt, which the machine signed. */
function receiptFacts({ model, endpoint, usage, finish_reason, completed_at, job_id }: AnyReceipt): AnswerReportProps['facts'] {
  return [
    { label: 'Model', value: model },
    { label: 'Endpoint', value: endpoint },
    ...(usage === undefined
      ? []
      : [{ label: 'Tokens', value: `${formatCount(usage.prompt_tokens)} input, ${formatCount(usage.completion_tokens)} output` }]),
    { label: 'Finish reason', value: finish_reason },
    { label: 'Completed', value: new Date(Math.min(completed_at, LAST_TIME_MS)).toISOString() },
    { label: 'Request', value: job_id },
  ];
}

/** Latest time that an ECMAScript `Date` can represent. */
const LAST_TIME_MS = 8.64e15;

function uncheckedOfReceipt({ mode }: NonNullable<ProviderReceiptVerdict['claims']>, hasRequest: boolean): readonly string[] {
  if (mode === 'end_to_end') {
    return ['The commitments to request and response: only the client that sealed the request can open them.'];
  }
  return [
    'The bytes of the response: a receipt has only their hash. Paste the answer with its headers to check them.',
    ...(hasRequest ? [] : ['That the receipt belongs to your request: paste the request body too.']),
  ];
}

function requestLine(request: string, receipt: Receipt): Check[] {
  if (request.trim() === '') return [];
  const isSame = [request, request.trim()].some((text) => sha256Hex(new TextEncoder().encode(text)) === receipt.request_sha256);
  const explanation = isSame ? 'The receipt names the body of this request.' : 'The receipt names another body.';
  return [{ name: 'receipt_request', result: isSame ? 'ok' : 'failed', explanation }];
}

/** Verifies with the request as entered, then without surrounding white space, which pasting may have added. */
function verifyRequest(request: string, verify: (sent: Uint8Array) => AnswerVerdict): AnswerVerdict {
  const exact = verify(new TextEncoder().encode(request));
  const isOther = exact.checks.some(({ name, result }) => name === 'receipt_request' && result === 'failed');
  return isOther ? verify(new TextEncoder().encode(request.trim())) : exact;
}

/**
 * Undoes changes of pasting. A stream always ends with one empty line. White space at the end of other bodies is removed only if the body
 * then matches the hash in its headers.
 */
function restoredBody({ body, headers, isStream }: HttpAnswer): Uint8Array {
  const text = new TextDecoder().decode(body);
  if (isStream) return new TextEncoder().encode(`${text.replace(/\s+$/, '')}\n\n`);
  const trimmed = new TextEncoder().encode(text.replace(/\s+$/, ''));
  return sha256Hex(body) !== headers.get('x-response-hash') && sha256Hex(trimmed) === headers.get('x-response-hash') ? trimmed : body;
}
