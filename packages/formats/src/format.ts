/** Interfaces of a public format: parsing a request, and rendering its response to the byte. */
import type { Endpoint } from '@inference/protocol';
import type { ApiError, HttpError } from './errors/errors.js';
import type { ImageUrlResolver } from './input-images/image-reader.js';
import type { UnknownMembers } from './members/member-table.js';
import type { OutputEvent } from './output-event.js';
import type { EmbeddingRequest, ImageRequest, ImageSize, TextRequest } from './request.js';
import type { RoutingPreferences } from './routing.js';

/** Response properties fixed before the first byte, equal in every chunk. */
export interface ResponseMetadata {
  /** Begins with the format's `idPrefix`. */
  readonly responseId: string;
  /** Seconds since 1970. */
  readonly created: number;
  /** Model id in the request. */
  readonly model: string;
  /** Engine build and weights (`system_fingerprint`), known only to the rendering provider. */
  readonly systemFingerprint?: string;
}

/** Request parameters for routing and reservation. The coordinator reads nothing else of a request body. */
export interface RequestParams {
  readonly endpoint: Endpoint;
  readonly model: string;
  readonly stream: boolean;
  /** Maximum tokens to generate, of all choices together, or null without a client limit. */
  readonly maxTokens: number | null;
  /** Number of choices. Absent: 1. */
  readonly choices?: number;
  /** Serial number of the only provider that may serve the request, or null. */
  readonly providerSerial: string | null;
  /** Image requests only. */
  readonly image?: ImageRequestParams;
  /** Routing preferences (`provider`, `models`). Absent: none. */
  readonly routing?: RoutingPreferences;
}

/** Properties of the response to an image request. */
export interface ImageRequestParams {
  readonly count: number;
  readonly size: ImageSize;
  readonly format: ImageRequest['format'];
  /** Whether the response contains URLs or image data. */
  readonly responseFormat: ImageRequest['responseFormat'];
}

/** How a stream carries its signature: as a last SSE event, or as an SSE comment, which SSE parsers skip. */
export type SignatureForm = 'event' | 'comment';

/** Renders a stream's signed bytes. Nothing may follow the finish event. */
export interface StreamRenderer {
  /** SSE text of the events, '' if none is visible. Throws after a finish event. */
  render(...events: readonly OutputEvent[]): string;
}

/** Renders a plain response. */
export interface PlainRenderer {
  add(...events: readonly OutputEvent[]): void;
  /** The whole body. Throws before the finish event was added. */
  body(): string;
}

/** Signature and receipt of a verified response. */
export interface SignedParts {
  /** Padded base64 of the DER signature over the 64 digits of `responseSha256`. */
  readonly signature: string;
  readonly responseSha256: string;
  /** base64url of the receipt's canonical JSON. */
  readonly receipt: string;
  /** Padded base64 of the receipt's DER signature. */
  readonly receiptSignature: string;
}

/** Renders the response to one request. Stores the request parameters that affect rendering. */
export interface AnswerFormat {
  /** Prefix of response ids, such as `chatcmpl-`. */
  readonly idPrefix: string;
  /** Prefix of tool call ids. Default: `call_`. */
  readonly callIdPrefix?: 'toolu_';
  stream(responseMetadata: ResponseMetadata): StreamRenderer;
  plain(responseMetadata: ResponseMetadata): PlainRenderer;
  /**
   * End of a stream after its signed bytes: the signature, and the format's terminator if any.
   *
   * @param form Only for formats with a signature event. Default: `event`.
   */
  signatureEvent(responseMetadata: ResponseMetadata, signed: SignedParts, form?: SignatureForm): string;
  /** Error event inside a started stream, without a terminator. */
  streamError(error: ApiError, requestId?: string): string;
}

interface Parsed<Request, Params> {
  readonly request: Request;
  readonly params: Params;
  readonly answer: AnswerFormat;
  /** Members and tools without effect, such as `tools[3] (web_search)`. */
  readonly ignored: readonly string[];
}

/** `answer`: the body of `/v1/responses` selects one of two response formats. */
export type ParsedRequest = Parsed<TextRequest, RequestParams>;
/** A request for embeddings. The response is never streamed. */
export type ParsedEmbeddings = Parsed<EmbeddingRequest, RequestParams>;
/** A request for images, never streamed. `model` null: the coordinator chooses, and names the model in the job context. */
export type ParsedImages = Parsed<
  ImageRequest,
  Omit<RequestParams, 'model'> & { readonly model: string | null; readonly image: ImageRequestParams }
>;

export interface ParseOptions {
  /** Default: `ignore`. The coordinator refuses unknown members before a provider sees the request. */
  readonly unknownMembers?: UnknownMembers;
  /** Images for `https` URLs. Left out: URLs are refused. */
  readonly imageAt?: ImageUrlResolver;
}

/** The format of an endpoint. */
export interface Format<Request> {
  /** Parses a body. Throws RequestError that names the field and contains no value of the request. */
  parse(body: Uint8Array, options?: ParseOptions): Request;
  /** Error response before the first byte. `requestId` appears if the format has such a member. */
  error(error: ApiError, requestId?: string): HttpError;
}

export type TextFormat = Format<ParsedRequest>;
export type EmbeddingFormat = Format<ParsedEmbeddings>;
export type ImageFormat = Format<ParsedImages>;

/** The format of a response without events: only `idPrefix` is used. */
export function answerWithoutEvents(idPrefix: string): AnswerFormat {
  const fail = (): never => {
    throw new Error(`a response ${idPrefix} has no events`);
  };
  return { idPrefix, stream: fail, plain: fail, signatureEvent: fail, streamError: fail };
}
