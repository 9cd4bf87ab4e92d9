/**
 * Verifies an answer and its provider: response bytes, signature, receipt, attestation record, and provider headers.
 *
 * `scripts/verify-response.sh` is tested with the same cases.
 */
import { type AttestationRecord, type EnclaveEvidence, maxImagesIn } from '@inference/protocol';
import { allOk, type Check, check, type ResponseVerdict } from './checks.js';
import { sha256Hex } from './digest.js';
import { unsupportedHeaders } from './provider-headers.js';
import type { Expected } from './receipt-checks.js';
import { type AcceptedAnchors, openFeed, type RecordVerdict, verifyRecord } from './record/verify-record.js';
import { type HeaderSource, headerOf } from './response-proof.js';
import { verifyResponse, verifyStream } from './verify-response.js';

export interface ReceivedAnswer {
  /** Exact bytes of the body, as received. */
  readonly body: Uint8Array;
  readonly headers: HeaderSource;
  /** Exact bytes of the request body, as sent; null: unknown, so the answer may belong to another request. */
  readonly request: Uint8Array | null;
  /** Path of the request, such as `/v1/chat/completions`; null: unknown. */
  readonly endpoint: string | null;
  /** The `X-Inference-Nonce` as sent; null: none. */
  readonly nonce: string | null;
  /** Images fetched from the URLs in the answer. Images inside the answer are always checked. */
  readonly images?: readonly Uint8Array[];
  /** SHA-256 of the weights that the receipt must name. Default: any. */
  readonly weightsSha256?: string;
  /** The attestation feed as downloaded. */
  readonly feed: unknown;
  /** Default: `published`. */
  readonly acceptedAnchors?: AcceptedAnchors;
}

export interface AnswerVerdict extends ResponseVerdict {
  /** Verdict on the provider that the headers name; null: the feed has no record of that provider. */
  readonly record: RecordVerdict | null;
  /** The provider's record in the feed; null: none. */
  readonly published: AttestationRecord | null;
  /** Null without a record in the feed. */
  readonly enclave: EnclaveEvidence | null;
  /** Names of the headers that the record does not support. */
  readonly unsupportedHeaders: readonly string[];
}

/**
 * @param now Milliseconds since 1970. `receipt`: the end of the job in the receipt, for answers saved with their feed.
 * @throws {FeedError} The feed is invalid.
 */
export function verifyAnswer(answer: ReceivedAnswer, now: number | 'receipt'): AnswerVerdict {
  const { headers } = answer;
  const { feed, anchor } = openFeed(answer.feed, answer.acceptedAnchors);
  const providerId = headerOf(headers, 'x-provider-id');
  const published = feed.providers.find(({ provider_id }) => provider_id === providerId) ?? null;
  const namedKey = headerOf(headers, 'x-attestation-se-public-key');
  const verdict = verdictOnBytes(answer, published?.se_public_key ?? namedKey);
  const moment = now === 'receipt' ? (verdict.receipt?.completed_at ?? Date.now()) : now;
  const record = published === null ? null : verifyRecord(published, moment, anchor);
  const unsupported = published === null ? [] : unsupportedHeaders(headers, published);
  const checks = [...verdict.checks, ...providerChecks({ record, keyIsPublished: published?.se_public_key === namedKey, unsupported })];
  return {
    verified: allOk(checks),
    checks,
    receipt: verdict.receipt,
    record,
    published,
    enclave: record?.enclave ?? null,
    unsupportedHeaders: unsupported,
  };
}

function verdictOnBytes(answer: ReceivedAnswer, publicKey: string): ResponseVerdict {
  const { headers, body } = answer;
  const isStream = headerOf(headers, 'content-type').startsWith('text/event-stream');
  const trusted = { publicKey, expected: expectedOf(answer, isStream) };
  return isStream ? verifyStream(body, trusted) : verifyResponse({ body, headers, ...trusted });
}

function expectedOf({ headers, request, endpoint, nonce, body, images, weightsSha256 }: ReceivedAnswer, isStream: boolean): Expected {
  const jobId = headerOf(headers, 'x-inference-job-id');
  const json = request === null ? null : jsonOf(request);
  const [model, models] = [memberOf(json, 'model'), memberOf(json, 'models')];
  const received = isStream ? undefined : (images ?? imagesIn(body)?.held);
  return {
    ...(request === null ? {} : { requestSha256: sha256Hex(request), requestBytes: request.length, requestImages: maxImagesIn(request) }),
    ...(weightsSha256 === undefined ? {} : { weightsSha256 }),
    ...(endpoint === null ? {} : { endpoint }),
    ...(nonce === null ? {} : { nonce }),
    ...(jobId === '' ? {} : { jobId }),
    ...(typeof model === 'string' ? { model } : {}),
    ...(Array.isArray(models) ? { fallbackModels: models.filter((name) => typeof name === 'string') } : {}),
    ...(received === undefined ? {} : { images: received }),
  };
}

/** Images of an answer: included, or as URLs to fetch. */
export interface ImagesInAnswer {
  readonly held?: readonly Uint8Array[];
  readonly urls?: readonly string[];
}

/** Images of a body in the format of the images endpoint; null for every other body. */
export function imagesIn(body: Uint8Array): ImagesInAnswer | null {
  const data = memberOf(jsonOf(body), 'data');
  if (!Array.isArray(data) || data.length === 0) return null;
  const texts = (name: string): string[] => data.map((item) => memberOf(item, name)).filter((value) => typeof value === 'string');
  const [held, urls] = [texts('b64_json'), texts('url')];
  if (held.length > 0) return { held: held.map(decodeBase64) };
  return urls.length > 0 ? { urls } : null;
}

/** Bytes of base64; empty, and therefore no image, for any other text. */
function decodeBase64(base64: string): Uint8Array {
  try {
    return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}

function jsonOf(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as unknown;
  } catch {
    // A body without JSON has no members to compare; its hash is still compared.
    return null;
  }
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
}

interface ProviderFindings {
  readonly record: RecordVerdict | null;
  readonly keyIsPublished: boolean;
  readonly unsupported: readonly string[];
}

function providerChecks({ record, keyIsPublished, unsupported }: ProviderFindings): Check[] {
  return [
    check(
      'provider_key',
      keyIsPublished,
      'The public feed names this key for this provider.',
      'The public feed does not name this key for this provider.',
    ),
    check(
      'provider_record',
      record?.consistent ?? false,
      "No claim in the provider's record is contradicted.",
      record === null ? 'The provider is not in the feed.' : contradictions(record),
    ),
    check(
      'provider_headers',
      unsupported.length === 0,
      'The headers say no more of the provider than its record.',
      `The record does not bear out ${unsupported.join(', ')}.`,
    ),
  ];
}

function contradictions({ findings }: RecordVerdict): string {
  const contradicted = findings.filter(({ result }) => result === 'contradicted');
  return `Contradicted: ${contradicted.map(({ claim, explanation }) => `${claim} (${explanation})`).join(' ')}.`;
}
