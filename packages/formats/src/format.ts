/**
 * Interfaces that each public format implements: parsing a request, and rendering its response.
 *
 * Coordinators parse requests to route them. Providers parse them again, render the exact response bytes and sign them.
 */
import type { Endpoint, RequiredMember } from '@inference/protocol';
import type { ApiError, HttpError } from './errors/errors.js';
import type { ImageUrlResolver } from './input-images/image-reader.js';
import type { UnknownMembers } from './members/member-table.js';
import type { OutputEvent } from './output-event.js';
import type { EmbeddingRequest, ImageRequest, ImageSize, TextRequest } from './request.js';
import type { RoutingPreferences } from './routing.js';

/** Response properties that are fixed before the first byte, and equal in every chunk. */
export interface ResponseMetadata {
  /** Starts with the format's `idPrefix`. */
  readonly responseId: string;
  /** Seconds since 1970. */
  readonly created: number;
  /** Model id in the request, or of the fallback model that answers. */
  readonly model: string;
  /** `system_fingerprint`: engine build and weights. Only the provider knows the value. */
  readonly systemFingerprint?: string;
}

/** Request parameters for routing and reservation. */
export interface RequestParams {
  readonly endpoint: Endpoint;
  readonly model: string;
  readonly stream: boolean;
  /** Maximum tokens to generate, all choices together; null if the request has no limit. */
  readonly maxTokens: number | null;
  /** Number of choices. Absent: 1. */
  readonly choices?: number;
  /** Serial number of the only provider that may serve the request; null: any. */
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

/** Form of the signature in a stream: a last SSE event, or an SSE comment, which SSE parsers skip. */
export type SignatureForm = 'event' | 'comment';

/** Renders the signed bytes of a stream. The finish event must be the last. */
export interface StreamRenderer {
  /** SSE text of the events; '' if the client sees none of them. Throws after the finish event. */
  render(...events: readonly OutputEvent[]): string;
}

/** Renders a response that is not streamed. */
export interface PlainRenderer {
  add(...events: readonly OutputEvent[]): void;
  /** The whole body. Throws if the finish event was not added. */
  body(): string;
}

/** Signature and receipt of a verified response. */
export interface SignedParts {
  /** Padded base64 of the DER signature over the 64 hex digits of `responseSha256`. */
  readonly signature: string;
  readonly responseSha256: string;
  /** base64url of the receipt's canonical JSON. */
  readonly receipt: string;
  /** Padded base64 of the receipt's DER signature. */
  readonly receiptSignature: string;
}

/** Renderers for the response to one request. The parser creates them, because request parameters affect the rendering. */
export interface AnswerFormat {
  /** Prefix of response ids, such as `chatcmpl-`. */
  readonly idPrefix: string;
  /** Prefix of tool call ids. Default: `call_`. */
  readonly callIdPrefix?: 'toolu_';
  /** Names of the events that can end a stream; empty if only `[DONE]` ends it. */
  readonly terminalEvents: readonly string[];
  /** Member of an unstreamed response by which clients recognize the format. Null for formats without one. */
  readonly bodyMember: RequiredMember | null;
  stream(responseMetadata: ResponseMetadata): StreamRenderer;
  plain(responseMetadata: ResponseMetadata): PlainRenderer;
  /**
   * The end of a stream, after the signed bytes: the signature, and the format's terminator if any.
   *
   * @param form Formats without a signature event ignore this parameter. Default: `event`.
   */
  signatureEvent(responseMetadata: ResponseMetadata, signed: SignedParts, form?: SignatureForm): string;
  /** Error event in a stream that has already started, without a terminator. */
  streamError(error: ApiError, requestId?: string): string;
}

interface Parsed<Request, Params> {
  readonly request: Request;
  readonly params: Params;
  readonly answer: AnswerFormat;
  /** Members and tools without effect, such as `tools[3] (web_search)`. */
  readonly ignored: readonly string[];
}

/** A parsed request for text. The body decides about `answer`, because `/v1/responses` has two response formats. */
export type ParsedRequest = Parsed<TextRequest, RequestParams>;
/** A parsed request for embeddings. The response is never streamed. */
export type ParsedEmbeddings = Parsed<EmbeddingRequest, RequestParams>;
/** A parsed request for images, never streamed. If `model` is null, the coordinator chooses the model. */
export type ParsedImages = Parsed<
  ImageRequest,
  Omit<RequestParams, 'model'> & { readonly model: string | null; readonly image: ImageRequestParams }
>;

export interface ParseOptions {
  /** Default: `ignore`. The coordinator refuses unknown members; providers ignore them. */
  readonly unknownMembers?: UnknownMembers;
  /** Returns the image for an `https` URL. Absent: URLs are refused. */
  readonly imageAt?: ImageUrlResolver;
}

/** Parser and error renderer of an endpoint. */
export interface Format<Request> {
  /** Parses a body. Throws RequestError, which names the field. */
  parse(body: Uint8Array, options?: ParseOptions): Request;
  /** Error response before the first byte of a response. Formats without a member for `requestId` ignore it. */
  error(error: ApiError, requestId?: string): HttpError;
}

export type TextFormat = Format<ParsedRequest>;
export type EmbeddingFormat = Format<ParsedEmbeddings>;
export type ImageFormat = Format<ParsedImages>;

/** `AnswerFormat` of endpoints that never stream and whose body other functions render. All its renderers throw. */
export function answerWithoutEvents(idPrefix: string, bodyMember: RequiredMember | null = null): AnswerFormat {
  const fail = (): never => {
    throw new Error(`a response ${idPrefix} has no events`);
  };
  return { idPrefix, terminalEvents: [], bodyMember, stream: fail, plain: fail, signatureEvent: fail, streamError: fail };
}
