/** `JobRequest`: a client's parsed request, with what routing, billing and attempts need. Functions here build and measure it. */
import {
  type AnswerFormat,
  DEFAULT_MAX_TOKENS,
  type ParsedImages,
  RequestError,
  type RequestParams,
  type ResponseMetadata,
  type SignatureForm,
  type UnknownMembers,
} from '@inference/formats';
import {
  type Endpoint,
  type ImageOffer,
  type JobId,
  MAX_INPUT_IMAGE_PIXELS,
  type ProviderId,
  promptTokenBound,
  type RequiredMember,
  type TrustLevel,
} from '@inference/protocol';
import { sha256Hex } from '@inference/protocol/crypto';
import type { PromptPrefix, Work } from '@inference/scheduler';
import type { MicroUsd } from '../../billing/micro-usd.js';
import type { KeyBudget } from '../../database/ledger/key-budget.js';
import type { FetchedInputImage } from './image-fetcher.js';
import { type ImageJob, imageTokens, makesImages, pixelCount } from './image-job.js';
import type { PrefixHashes } from './prefix-hashes.js';
import { readNonce, readProviderId, readSignatureForm, readTrustFloor } from './request-headers.js';
import type { SealedRequest } from './sealed-request.js';

/** Assumed bytes of a request body per prompt token, on average. */
const BYTES_PER_TOKEN = 4;
/** Assumed length of an answer in tokens. Most answers are shorter than their limit. */
const TYPICAL_COMPLETION_TOKENS = 400;

export interface JobRequest {
  readonly jobId: JobId;
  readonly accountId: string;
  readonly apiKeyId: string;
  /** Maximum total cost of the API key's jobs. */
  readonly keySpendLimit: MicroUsd | null;
  /** Maximum cost of the API key's jobs per calendar period. */
  readonly keyBudget: KeyBudget | null;
  readonly endpoint: Endpoint;
  readonly params: RequestParams;
  /** Images to generate. Null for other jobs, and for sealed requests. */
  readonly images: ImageJob | null;
  /** Images in the prompt, if any. */
  readonly inputImages: InputImages | null;
  /** Images that the coordinator fetched for URLs in the body: one per distinct URL, in order of first appearance. */
  readonly fetchedImages: readonly FetchedInputImage[];
  /** Keyed hashes of the prompt's prefixes for the model of `params`, shortest first. Never stored. */
  readonly promptPrefixes: readonly PromptPrefix[];
  /** Prefix hashes by model, for the fallback models. */
  readonly fallbackPrefixes: ReadonlyMap<string, readonly PromptPrefix[]>;
  /** Id, time and model that the response states. */
  readonly responseMetadata: ResponseMetadata;
  /** Names of the server-sent events that can end the response stream. Empty if the format has none, and for a sealed request. */
  readonly terminalEvents: readonly string[];
  /** Member by which clients recognize an unstreamed response. Null if it has none, and for a sealed request. */
  readonly bodyMember: RequiredMember | null;
  /** Request body of the client, unchanged: JSON, or a sealed request. */
  readonly body: Uint8Array;
  /** Size of the JSON body. For a sealed request, the size that its context states. */
  readonly jsonBytes: number;
  /** Readable part of a request that the client sealed (end-to-end encrypted). Null in plain mode, where the coordinator encrypts. */
  readonly sealed: SealedRequest | null;
  readonly requestSha256: string;
  /** Nonce of the client, which the receipt repeats. */
  readonly clientNonce: string | null;
  /** Minimum trust level that the client requires, if any. The model may require another. */
  readonly trustFloor: TrustLevel | null;
  /** Header or body member that set `trustFloor`, for errors. */
  readonly trustParam: 'X-Inference-Trust' | 'provider.min_trust';
  /** Whether a stream's signature is sent as an event or a comment. */
  readonly signatureForm: SignatureForm;
  /** Names of request members and tools that have no effect. */
  readonly ignored: readonly string[];
  /** Provider that the client requires by id. `params` may name one by serial number. */
  readonly providerId: ProviderId | null;
}

export interface InputImages {
  readonly count: number;
  /** Base64 characters of the images in the JSON body. */
  readonly base64Bytes: number;
  /** Paths of the images' parts in the body, in order. Empty for a sealed request. */
  readonly fields: readonly string[];
  /** Pixels of all images together, or their maximum for a sealed request. 0 except for token counting, which is limited by pixels. */
  readonly maxPixels: number;
}

/** A request whose body the coordinator can read. */
export interface ReadableJobRequest extends JobRequest {
  /** Formats the parts of the response that the coordinator adds, such as the signature. */
  readonly answerFormat: AnswerFormat;
}

/** An unparsed request, its headers, and the API key that sent it. */
export interface RequestInput {
  readonly jobId: JobId;
  readonly endpoint: Endpoint;
  readonly body: Uint8Array;
  /** Maximum size of the body without images, in bytes. */
  readonly maxTextBytes: number;
  readonly accountId: string;
  readonly apiKeyId: string;
  readonly keySpendLimit: MicroUsd | null;
  readonly keyBudget: KeyBudget | null;
  readonly nonceHeader: string | undefined;
  readonly prefixHashes: PrefixHashes;
  readonly trustHeader: string | undefined;
  readonly signatureHeader: string | undefined;
  /** The API key's default if `signatureHeader` is absent. */
  readonly keySignatureForm: SignatureForm | null;
  readonly unknownMembers: UnknownMembers;
  readonly providerIdHeader: string | undefined;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** Upper bound of a job's prompt tokens, for a model that needs up to `maxImageTokens` per image. */
export function maxPromptTokens({ jsonBytes, inputImages }: Pick<JobRequest, 'jsonBytes' | 'inputImages'>, maxImageTokens: number): number {
  if (inputImages === null) return promptTokenBound(jsonBytes);
  return promptTokenBound(jsonBytes - inputImages.base64Bytes, inputImages.count * maxImageTokens);
}

/** Job of a parsed image request, with the resolved model and size. Throws RequestError on a malformed header. */
export function imageJobRequest(
  input: RequestInput,
  { params, answer: answerFormat, ignored }: Pick<ParsedImages, 'params' | 'answer' | 'ignored'>,
  { model, images }: { readonly model: string; readonly images: ImageJob },
): ReadableJobRequest {
  return jobOf(input, { params: { ...params, model }, answerFormat, promptPrefixes: [], images, inputImages: null, ignored });
}

/** Job of a sealed request. Among the headers, only the trust level applies. Throws RequestError. */
export function sealedJobRequest(input: Omit<RequestInput, 'endpoint'>, sealed: SealedRequest): JobRequest {
  const { endpoint, model, stream, max_tokens: maxTokens, body_bytes: jsonBytes, input_images, input_image_bytes } = sealed.context;
  const maxPixels = endpoint === '/v1/messages/count_tokens' ? (input_images ?? 0) * MAX_INPUT_IMAGE_PIXELS : 0;
  const base64Bytes = input_image_bytes ?? 0;
  const inputImages = input_images === undefined ? null : { count: input_images, base64Bytes, fields: [], maxPixels };
  requireTextSize(jsonBytes, input.maxTextBytes, inputImages);
  const { jobId, accountId, apiKeyId, keySpendLimit, keyBudget, body } = input;
  return {
    jobId,
    accountId,
    apiKeyId,
    keySpendLimit,
    keyBudget,
    endpoint,
    params: { endpoint, model, stream, maxTokens, providerSerial: null },
    images: null,
    inputImages,
    fetchedImages: [],
    promptPrefixes: [],
    fallbackPrefixes: new Map(),
    responseMetadata: {
      responseId: RESPONSE_ID_PREFIXES[endpoint] + jobId.replaceAll('-', ''),
      created: Math.floor(input.now / 1000),
      model,
    },
    terminalEvents: [],
    bodyMember: null,
    body,
    jsonBytes,
    sealed,
    requestSha256: sha256Hex(body),
    clientNonce: null,
    trustFloor: readTrustFloor(input.trustHeader),
    trustParam: 'X-Inference-Trust',
    signatureForm: 'event',
    ignored: [],
    providerId: null,
  };
}

/** Id prefixes of responses to sealed requests, whose bodies the coordinator cannot parse. */
const RESPONSE_ID_PREFIXES: Readonly<Record<Endpoint, string>> = {
  '/v1/chat/completions': 'chatcmpl-',
  '/v1/completions': 'cmpl-',
  '/v1/responses': 'resp_',
  '/v1/messages': 'msg_',
  '/v1/messages/count_tokens': '',
  '/v1/embeddings': '',
  '/v1/images/generations': '',
};

/** Number of images that the job generates, 0 for text and vectors. */
export function requestedImages({ images, sealed }: Pick<JobRequest, 'images' | 'sealed'>): number {
  return images?.count ?? sealed?.context.images ?? 0;
}

/**
 * Whether a provider with this image offer may get the job. True for a job that generates no images.
 *
 * The body of a sealed job that names no size may have any size of the offer, so none may exceed the size that the job is charged for.
 * A named size, and the number of sealed images, are not compared with the offer: the provider refuses those that it does not make.
 */
export function mayGenerateImages({ images, sealed }: Pick<JobRequest, 'images' | 'sealed'>, offer: ImageOffer | undefined): boolean {
  if (images !== null) return makesImages(offer, images, images.pixels);
  const chargedPixels = sealed?.imagePixels ?? null;
  if (sealed === null || chargedPixels === null) return true;
  if (offer === undefined) return false;
  return sealed.context.image_size !== undefined || offer.sizes.every((size) => pixelCount(size) <= chargedPixels);
}

/** Throws RequestError if a body, without its images, has more than `maxTextBytes`. */
export function requireTextSize(bodyBytes: number, maxTextBytes: number, images: InputImages | null): void {
  if (bodyBytes - (images?.base64Bytes ?? 0) <= maxTextBytes) return;
  const message = `The request body has more than ${maxTextBytes} bytes${images === null ? '' : ' besides its images'}.`;
  throw new RequestError('body_too_large', null, message);
}

/** Job of a parsed body. Throws RequestError on a malformed header. */
export function jobOf(
  input: RequestInput,
  parsed: Pick<ReadableJobRequest, 'params' | 'answerFormat' | 'promptPrefixes' | 'images' | 'inputImages' | 'ignored'> &
    Partial<Pick<ReadableJobRequest, 'fallbackPrefixes'>>,
): ReadableJobRequest {
  const { params, answerFormat } = parsed;
  const clientNonce = readNonce(input.nonceHeader);
  const inHeader = readTrustFloor(input.trustHeader);
  const inBody = params.routing?.minTrust ?? null;
  const isByBody = inBody !== null && inHeader !== 'hardware';
  const signatureForm = readSignatureForm(input.signatureHeader) ?? input.keySignatureForm ?? 'event';
  const providerId = readProviderId(input.providerIdHeader);
  const { jobId } = input;
  return {
    jobId,
    accountId: input.accountId,
    apiKeyId: input.apiKeyId,
    keySpendLimit: input.keySpendLimit,
    keyBudget: input.keyBudget,
    endpoint: input.endpoint,
    fallbackPrefixes: new Map(),
    ...parsed,
    responseMetadata: {
      responseId: answerFormat.idPrefix + jobId.replaceAll('-', ''),
      created: Math.floor(input.now / 1000),
      model: params.model,
    },
    terminalEvents: answerFormat.terminalEvents,
    bodyMember: answerFormat.bodyMember,
    body: input.body,
    jsonBytes: input.body.length,
    fetchedImages: [],
    sealed: null,
    requestSha256: sha256Hex(input.body),
    clientNonce,
    trustFloor: isByBody ? inBody : inHeader,
    trustParam: isByBody ? 'provider.min_trust' : 'X-Inference-Trust',
    signatureForm,
    providerId,
  };
}

/** Copy of the job for a fallback model, with its prefix hashes. For the job's own model, `job` itself. */
export function withModel(job: JobRequest, model: string): JobRequest {
  if (model === job.params.model) return job;
  const promptPrefixes = job.fallbackPrefixes.get(model) ?? [];
  return { ...job, params: { ...job.params, model }, responseMetadata: { ...job.responseMetadata, model }, promptPrefixes };
}

/** Work estimate for scheduling, from sizes only. An image in the prompt counts as `maxImageTokens`. */
export function expectedWork({ jsonBytes, params, images, inputImages }: JobRequest, maxImageTokens: number): Work {
  if (images !== null) return { promptTokens: 1, completionTokens: imageTokens(images) };
  const textBytes = jsonBytes - (inputImages?.base64Bytes ?? 0);
  return {
    promptTokens: Math.ceil(textBytes / BYTES_PER_TOKEN) + (inputImages?.count ?? 0) * maxImageTokens,
    completionTokens: Math.min(params.maxTokens ?? DEFAULT_MAX_TOKENS, (params.choices ?? 1) * TYPICAL_COMPLETION_TOKENS),
  };
}
