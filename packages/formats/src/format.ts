/** What every format is made of: reading a request, and writing its answer down to the byte. */
import type { Endpoint } from '@inference/protocol';
import type { ApiError, HttpError } from './errors.js';
import type { UnknownMembers } from './members/member-table.js';
import type { OutputEvent } from './output-event.js';
import type { EmbeddingRequest, ImageRequest, ImageSize, TextRequest } from './request.js';

/** What is decided for a response before it begins; it stays the same in every chunk. */
export interface Envelope {
  /** Begins with the format's `idPrefix`. */
  readonly responseId: string;
  /** Seconds since 1970. */
  readonly created: number;
  /** Model id as the client sees it. */
  readonly model: string;
  /** Names the engine build and the weights that answer (`system_fingerprint`). The machine that renders knows it. */
  readonly systemFingerprint?: string;
}

/** All that a coordinator needs to know of a request body. Nothing else of the body guides it. */
export interface RequestFacts {
  readonly endpoint: Endpoint;
  readonly model: string;
  readonly stream: boolean;
  /** Most tokens to generate, or null when the client named no limit. */
  readonly maxTokens: number | null;
  /** Serial number of the only machine that may serve, or null. */
  readonly providerSerial: string | null;
  /** Of image requests alone. */
  readonly image?: ImageFacts;
}

/** What the answer to an image request will be. */
export interface ImageFacts {
  readonly count: number;
  readonly size: ImageSize;
  readonly format: ImageRequest['format'];
  /** Whether the answer names addresses of the images, or holds them. */
  readonly delivery: ImageRequest['delivery'];
}

/** How a stream carries its signature: as an event, or as a comment, which clients never see. */
export type SignatureForm = 'event' | 'comment';

/** Renders a stream's signed bytes. Nothing may follow the finish event. */
export interface StreamRenderer {
  /** SSE text of the events, '' when they show nothing. Throws when called after a finish event. */
  render(...events: readonly OutputEvent[]): string;
}

/** Renders a plain response. */
export interface PlainRenderer {
  add(...events: readonly OutputEvent[]): void;
  /** The whole body. Throws before the finish event was added. */
  body(): string;
}

/** What goes out to the client with a verified response. */
export interface SignedParts {
  /** Padded base64 of the DER signature over the 64 digits of `responseSha256`. */
  readonly signature: string;
  readonly responseSha256: string;
  /** base64url of the receipt's canonical JSON. */
  readonly receipt: string;
  /** Padded base64 of the receipt's DER signature. */
  readonly receiptSignature: string;
}

/** How the answer to one request is written. It knows what of the request shows in the answer. */
export interface AnswerFormat {
  /** What ids of responses in this format begin with, such as `chatcmpl-`. */
  readonly idPrefix: string;
  /** What ids of tool calls begin with. Default: `call_`. */
  readonly callIdPrefix?: 'toolu_';
  stream(envelope: Envelope): StreamRenderer;
  plain(envelope: Envelope): PlainRenderer;
  /**
   * What ends a stream after its signed bytes: the signature, and the terminator where the format has one. `form` decides where
   * the format has an event for it (default: `event`); the others have the comment alone.
   */
  signatureEvent(envelope: Envelope, signed: SignedParts, form?: SignatureForm): string;
  /** Error inside a stream that has begun. No terminator follows it. */
  streamError(error: ApiError, requestId?: string): string;
}

export interface ParsedRequest {
  readonly request: TextRequest;
  readonly facts: RequestFacts;
  /** `/v1/responses` answers in one of two formats; which of them, the body says. */
  readonly answer: AnswerFormat;
  /** Members and tools of the request that have no effect, such as `tools[3] (web_search)`. */
  readonly ignored: readonly string[];
}

export interface ParseOptions {
  /** Default: `ignore`. The coordinator, which sees requests first, refuses. */
  readonly unknownMembers?: UnknownMembers;
}

export interface TextFormat {
  readonly endpoint: Endpoint;
  /** Checks and normalises a body. Throws RequestError, which names the field at fault and repeats nothing of its value. */
  parse(body: Uint8Array, options?: ParseOptions): ParsedRequest;
  /** Error before anything was answered. `requestId` is shown where the format has a place for it. */
  error(error: ApiError, requestId?: string): HttpError;
}

/** A request for vectors. Its answer is never streamed. */
export interface ParsedEmbeddings {
  readonly request: EmbeddingRequest;
  readonly facts: RequestFacts;
  readonly answer: AnswerFormat;
  readonly ignored: readonly string[];
}

export interface EmbeddingFormat {
  readonly endpoint: Endpoint;
  /** Checks and normalises a body. Throws RequestError, which names the field at fault and repeats nothing of its value. */
  parse(body: Uint8Array, options?: ParseOptions): ParsedEmbeddings;
  error(error: ApiError, requestId?: string): HttpError;
}

/** A request for images. Its answer is never streamed. */
export interface ParsedImages {
  readonly request: ImageRequest;
  /** `model` is null where the client leaves the choice to the coordinator, which then says it in the job's context. */
  readonly facts: Omit<RequestFacts, 'model'> & { readonly model: string | null; readonly image: ImageFacts };
  readonly answer: AnswerFormat;
  readonly ignored: readonly string[];
}

export interface ImageFormat {
  readonly endpoint: Endpoint;
  /** Checks and normalises a body. Throws RequestError, which names the field at fault and repeats nothing of its value. */
  parse(body: Uint8Array, options?: ParseOptions): ParsedImages;
  error(error: ApiError, requestId?: string): HttpError;
}
