/**
 * One client's request, reduced to what the coordinator needs: facts from the body, and the body itself as opaque bytes.
 * Nothing after this file looks into the body.
 */
import {
  type AnswerFormat,
  apiError,
  type Envelope,
  formatFor,
  type ParsedImages,
  RequestError,
  type RequestFacts,
  type SignatureForm,
  type UnknownMembers,
} from '@inference/formats';
import {
  type Endpoint,
  fromBase64Url,
  type JobContext,
  type JobId,
  PROVIDER_ID_PATTERN,
  type ProviderId,
  type TrustLevel,
} from '@inference/protocol';
import { sha256Hex } from '@inference/protocol/crypto';
import type { PromptPrefix, Work } from '@inference/scheduler';
import type { MicroUsd } from '../../billing/micro-usd.js';
import type { ProviderConnection } from '../../providers/provider-connection.js';
import { DEFAULT_MAX_TOKENS } from '../job-timings.js';
import { type ImageJob, imageTokens } from './image-job.js';
import { newJobId } from './job-id.js';
import type { PrefixHashes } from './prefix-hashes.js';

const PROVIDER_ID = new RegExp(PROVIDER_ID_PATTERN);
/** Of a body, on average. */
const BYTES_PER_TOKEN = 4;
/** More do not fit into the header that tells them. */
const MAX_IGNORED = 100;
/** Most answers are shorter than their limit. Tokens. */
const TYPICAL_COMPLETION = 400;

export interface JobRequest {
  readonly jobId: JobId;
  readonly accountId: string;
  readonly apiKeyId: string;
  /** What the key may spend in all, or null. */
  readonly keySpendLimit: MicroUsd | null;
  readonly endpoint: Endpoint;
  readonly facts: RequestFacts;
  /** Of image jobs alone. */
  readonly images: ImageJob | null;
  /** Keyed hashes of the beginnings of the prompt, which stay in memory. */
  readonly chain: readonly PromptPrefix[];
  readonly envelope: Envelope;
  /** What of the answer the coordinator itself writes. */
  readonly answer: AnswerFormat;
  /** The client's body, byte for byte. */
  readonly body: Uint8Array;
  readonly requestSha256: string;
  readonly clientNonce: string | null;
  /** Least trust that the client asks of the machine, or null: what the model asks. */
  readonly trustFloor: TrustLevel | null;
  readonly signatureForm: SignatureForm;
  /** Members and tools of the request that have no effect. */
  readonly ignored: readonly string[];
  /** The only provider that may serve, or null: any. */
  readonly providerId: ProviderId | null;
}

/** What a request says beside its body, and who sent it. */
export interface RequestInput {
  readonly endpoint: Endpoint;
  readonly body: Uint8Array;
  readonly accountId: string;
  readonly apiKeyId: string;
  readonly keySpendLimit: MicroUsd | null;
  readonly nonceHeader: string | undefined;
  readonly prefixHashes: PrefixHashes;
  readonly trustHeader: string | undefined;
  readonly signatureHeader: string | undefined;
  /** What the key asks for where the header does not; null: nothing. */
  readonly keySignatureForm: SignatureForm | null;
  readonly unknownMembers: UnknownMembers;
  readonly providerIdHeader: string | undefined;
  /** Milliseconds. */
  readonly now: number;
}

/** Reads a request for text or vectors. Throws RequestError naming what is wrong with it. */
export function readJobRequest(input: RequestInput & { readonly endpoint: Exclude<Endpoint, ImagesEndpoint> }): JobRequest {
  const { request, facts, answer, ignored } = formatFor(input.endpoint).parse(input.body, input);
  // Vectors are made of all of a text: nothing of it is remembered.
  const chain = request.task === 'embed' ? [] : input.prefixHashes.chain(request, input.accountId);
  return jobOf(input, { facts, answer, chain, images: null, ignored: ignored.slice(0, MAX_IGNORED) });
}

type ImagesEndpoint = '/v1/images/generations';

/** The job of an image request that was read, for the model and the size that it comes to. Throws RequestError for a bad header. */
export function imageJobRequest(
  input: RequestInput,
  { facts, answer, ignored }: Pick<ParsedImages, 'facts' | 'answer' | 'ignored'>,
  { model, images }: { readonly model: string; readonly images: ImageJob },
): JobRequest {
  return jobOf(input, { facts: { ...facts, model }, answer, chain: [], images, ignored });
}

function jobOf(input: RequestInput, parsed: Pick<JobRequest, 'facts' | 'answer' | 'chain' | 'images' | 'ignored'>): JobRequest {
  const { facts, answer } = parsed;
  const clientNonce = readNonce(input.nonceHeader);
  const trustFloor = readTrustFloor(input.trustHeader);
  const signatureForm = readSignatureForm(input.signatureHeader) ?? input.keySignatureForm ?? 'event';
  const providerId = readProviderId(input.providerIdHeader);
  const jobId = newJobId(input.now);
  return {
    jobId,
    accountId: input.accountId,
    apiKeyId: input.apiKeyId,
    keySpendLimit: input.keySpendLimit,
    endpoint: input.endpoint,
    ...parsed,
    envelope: { responseId: answer.idPrefix + jobId.replaceAll('-', ''), created: Math.floor(input.now / 1000), model: facts.model },
    body: input.body,
    requestSha256: sha256Hex(input.body),
    clientNonce,
    trustFloor,
    signatureForm,
    providerId,
  };
}

/**
 * The context that binds a job to one provider and one of its keys. `cacheScope`: whose prefixes it may share with. Null when the
 * provider has no valid key left. Times in milliseconds.
 */
export function jobContext(
  job: JobRequest,
  provider: ProviderConnection,
  { cacheScope, now, lifetimeMs }: { readonly cacheScope: string; readonly now: number; readonly lifetimeMs: number },
): JobContext | null {
  const key = provider.key;
  if (key === null) return null;
  // In the order of its canonical text, so that nobody has to sort it.
  return {
    cache_scope: cacheScope,
    ...(job.clientNonce === null ? {} : { client_nonce: job.clientNonce }),
    created: job.envelope.created,
    endpoint: job.endpoint,
    expires_at: now + lifetimeMs,
    issued_at: now,
    job_id: job.jobId,
    key_id: key.keyId,
    max_tokens: job.facts.maxTokens ?? DEFAULT_MAX_TOKENS,
    model: job.facts.model,
    overrides: overridesOf(job),
    provider_id: provider.registration.identity.providerId,
    request_sha256: job.requestSha256,
    response_id: job.envelope.responseId,
    stream: job.facts.stream,
    v: 1,
  };
}

function overridesOf({ facts, images }: JobRequest): JobContext['overrides'] {
  return {
    ...(facts.maxTokens === null ? { max_tokens: DEFAULT_MAX_TOKENS } : {}),
    ...(images === null || images.urls === null ? {} : { image_urls: [...images.urls] }),
  };
}

/** What the request may take, guessed from sizes alone: the body is never looked into. */
export function expectedWork({ body, facts, images }: JobRequest): Work {
  if (images !== null) return { promptTokens: 1, completionTokens: imageTokens(images) };
  return {
    promptTokens: Math.ceil(body.length / BYTES_PER_TOKEN),
    completionTokens: Math.min(facts.maxTokens ?? DEFAULT_MAX_TOKENS, TYPICAL_COMPLETION),
  };
}

function readNonce(header: string | undefined): string | null {
  if (header === undefined) return null;
  try {
    if (fromBase64Url(header).length === 32) return header;
  } catch {
    // Falls through to the one message that says what is wanted.
  }
  const { code, message } = apiError('invalid_request', { message: 'X-Inference-Nonce must be 32 bytes in base64url without padding.' });
  throw new RequestError(code, 'X-Inference-Nonce', message);
}

function readTrustFloor(header: string | undefined): TrustLevel | null {
  if (header === undefined) return null;
  const level = header.trim().toLowerCase();
  if (level === 'hardware' || level === 'self_signed') return level;
  throw new RequestError('invalid_request', 'X-Inference-Trust', 'X-Inference-Trust must be hardware or self_signed.');
}

function readSignatureForm(header: string | undefined): SignatureForm | null {
  if (header === undefined) return null;
  const form = header.trim().toLowerCase();
  if (form === 'event' || form === 'comment') return form;
  throw new RequestError('invalid_request', 'X-Inference-Signature', 'X-Inference-Signature must be event or comment.');
}

function readProviderId(header: string | undefined): ProviderId | null {
  if (header === undefined) return null;
  const id = header.trim();
  if (PROVIDER_ID.test(id)) return id as ProviderId;
  const message = 'X-Inference-Provider-Id must be a provider id: 32 digits of lowercase hexadecimal.';
  throw new RequestError('invalid_request', 'X-Inference-Provider-Id', message);
}
