/** Parses an HTTP request of an SDK into the members of a sealed request. */
import {
  type AnswerFormat,
  DEFAULT_MAX_TOKENS,
  formatFor,
  type HttpError,
  imagesOfRequest,
  RequestError,
  type TextRequest,
  textBytesOf,
} from '@inference/formats';
import { type Endpoint, EndpointSchema, fromBase64Url, MAX_E2E_BODY_BYTES, MAX_E2E_VISION_BODY_BYTES } from '@inference/protocol';
import { inlineImages } from '../images/inline-images.js';
import type { Fetch } from '../network/download.js';
import { E2ERefused } from '../refusal.js';

const ENDPOINTS: ReadonlySet<string> = new Set(EndpointSchema.anyOf.map((literal) => literal.const));

export interface SealableRequest {
  readonly endpoint: Endpoint;
  /** The caller's exact bytes, unless fetched images replaced URLs. */
  readonly body: Uint8Array;
  readonly model: string;
  readonly stream: boolean;
  readonly maxTokens: number;
  /** Images in the prompt, and the bytes of their base64 in the body; null: none. */
  readonly inputImages: { readonly count: number; readonly bytes: number } | null;
  /** Format of the answer: how to recognize its end, and how to write the end of a stream. */
  readonly answer: Pick<AnswerFormat, 'bodyMember' | 'signatureEvent' | 'terminalEvents'>;
  /** Number of requested images; null: not an image request. */
  readonly images: number | null;
  /** Size that the body names as `<width>x<height>`; null: none, or not an image request. */
  readonly imageSize: string | null;
  /** `X-Inference-Nonce` of the caller; null: none. */
  readonly clientNonce: string | null;
  /** `X-Inference-Provider-Id` of the caller; null: any provider. */
  readonly providerId: string | null;
  /** Headers of the caller's API key. They are sent in clear. */
  readonly authorization: Readonly<Record<string, string>>;
}

/** A request that the caller must correct, as an HTTP error in the endpoint's format. */
export class InvalidRequest extends Error {
  constructor(
    readonly response: HttpError,
    code: string,
  ) {
    // Omits the error's own message, which may quote the request.
    super(`The request is not valid (${code}), and was not sent.`);
  }
}

/** Returns the endpoint at a path below the base URL; null: requests to this path are not sealed. */
export function endpointOf(path: string): Endpoint | null {
  return ENDPOINTS.has(path) ? (path as Endpoint) : null;
}

/**
 * Reads a POST. Throws {@link InvalidRequest}, or {@link E2ERefused} `not_sealable`.
 *
 * @param fetchImage Fetches images by address; null: images by address are refused.
 */
export async function readSealableRequest(request: Request, endpoint: Endpoint, fetchImage: Fetch | null): Promise<SealableRequest> {
  if (request.headers.has('content-encoding')) throw new E2ERefused('not_sealable', 'A sealed request has no content-encoding.');
  const received = new Uint8Array(await request.arrayBuffer());
  const beta = request.headers.has('anthropic-beta');
  try {
    requireMaxBytes(received.length, MAX_E2E_VISION_BODY_BYTES);
    const body = await inlineImages(received, { fetchImage, signal: request.signal });
    return {
      endpoint,
      body,
      ...termsOf(endpoint, body, beta ? 'refuse_misspelt' : 'refuse'),
      clientNonce: nonceOf(request.headers.get('x-inference-nonce')),
      providerId: request.headers.get('x-inference-provider-id') || null,
      authorization: authorizationOf(request.headers),
    };
  } catch (error) {
    if (error instanceof RequestError) throw new InvalidRequest(formatFor(endpoint).error(error), error.code);
    throw error;
  }
}

function requireMaxBytes(bytes: number, maxBytes: number): void {
  if (bytes > maxBytes) throw new RequestError('body_too_large', null, `The request body is over ${maxBytes} bytes.`);
}

/** Selects the headers of an API key, in either SDK's form. */
export function authorizationOf(headers: Headers): Record<string, string> {
  const sent: Record<string, string> = {};
  for (const name of ['authorization', 'x-api-key']) {
    const value = headers.get(name);
    if (value !== null) sent[name] = value;
  }
  return sent;
}

function termsOf(
  endpoint: Endpoint,
  body: Uint8Array,
  unknownMembers: 'refuse' | 'refuse_misspelt',
): Pick<SealableRequest, 'model' | 'stream' | 'maxTokens' | 'inputImages' | 'images' | 'imageSize' | 'answer'> {
  const { request, params, answer } = formatFor(endpoint).parse(body, { unknownMembers });
  const { model, stream } = params;
  if (model === null) throw new RequestError('invalid_request', 'model', 'model is required in end-to-end mode.');
  if (params.providerSerial !== null) {
    throw new RequestError('invalid_request', 'provider_serial', 'End-to-end mode chooses providers by the policy of the client.');
  }
  if (params.routing !== undefined) {
    const param = params.routing.given.length > 0 ? 'provider' : 'models';
    throw new RequestError('invalid_request', param, `End-to-end mode does not take ${param}: the policy of the client chooses providers.`);
  }
  if (params.choices !== undefined) {
    throw new RequestError('unsupported_parameter', 'n', 'n must be 1 in end-to-end mode.');
  }
  if (params.image?.responseFormat === 'url') {
    throw new RequestError('invalid_request', 'response_format', 'End-to-end mode returns images as b64_json only.');
  }
  const inputImages = isTextRequest(request) ? inputImagesOf(request, body.length) : null;
  requireMaxBytes(body.length - (inputImages?.bytes ?? 0), MAX_E2E_BODY_BYTES);
  const maxTokens = params.maxTokens ?? DEFAULT_MAX_TOKENS;
  const { count: images = null, size = null } = params.image ?? {};
  return { model, stream, maxTokens, inputImages, images, imageSize: size === 'auto' ? null : size, answer };
}

function isTextRequest(request: ReturnType<ReturnType<typeof formatFor>['parse']>['request']): request is TextRequest {
  return request.task === 'generate' || request.task === 'count';
}

function inputImagesOf(request: Pick<TextRequest, 'prompt'>, bodyBytes: number): SealableRequest['inputImages'] {
  const count = imagesOfRequest(request).length;
  return count === 0 ? null : { count, bytes: bodyBytes - textBytesOf(request, bodyBytes) };
}

function nonceOf(header: string | null): string | null {
  if (header === null) return null;
  try {
    if (fromBase64Url(header).length === 32) return header;
  } catch {
    // Falls through to the error below.
  }
  throw new RequestError('invalid_request', 'X-Inference-Nonce', 'X-Inference-Nonce must be 32 bytes in base64url without padding.');
}
