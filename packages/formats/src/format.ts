/**
 * What every text format is made of: the one internal job that requests are normalised to, the events that an engine's
 * output becomes, and the renderers that turn those events into the exact response bytes of a format.
 */
import type { Endpoint, FinishReason, Usage } from '@inference/protocol';
import type { ApiError } from './errors.js';

/** What the coordinator decided for a response; it stays the same in every chunk. */
export interface Envelope {
  readonly responseId: string;
  /** Seconds since 1970. */
  readonly created: number;
  /** Model id as the client sees it. */
  readonly model: string;
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
}

export type ChatRole = 'system' | 'user' | 'assistant' | 'tool';

export interface ChatMessage {
  readonly role: ChatRole;
  readonly content: string;
}

/** Null means that the client did not ask for it. */
export interface Sampling {
  /** 0 to 2; 0 is greedy. */
  readonly temperature: number;
  /** Nucleus mass, above 0 and up to 1. */
  readonly topP: number | null;
  /** An integer from -2^63 to 2^63; engines with narrower seeds reduce it. */
  readonly seed: number | null;
  /** -2 to 2. */
  readonly frequencyPenalty: number | null;
  /** -2 to 2. */
  readonly presencePenalty: number | null;
}

/** The internal job of every text format. */
export interface TextRequest {
  readonly model: string;
  readonly stream: boolean;
  readonly maxTokens: number | null;
  /** At least one. */
  readonly messages: readonly ChatMessage[];
  readonly sampling: Sampling;
  /** Up to four, none empty, none twice. */
  readonly stop: readonly string[];
  /** The client asked for a usage chunk at the end of its stream. */
  readonly includeUsage: boolean;
}

export interface ParsedRequest {
  readonly request: TextRequest;
  readonly facts: RequestFacts;
}

export type OutputEvent =
  /** Visible text. One event per generated piece, so that a stream shows the true pace. */
  | { readonly type: 'text'; readonly text: string }
  /** Text of a think section, without its tags. */
  | { readonly type: 'reasoning'; readonly text: string }
  /** The last event, once. `hiddenTokens` are those of think sections, and are counted in `usage` as well. */
  | { readonly type: 'finish'; readonly reason: FinishReason; readonly usage: Usage; readonly hiddenTokens: number };

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

export interface TextFormat {
  readonly endpoint: Endpoint;
  /** Checks and normalises a body. Throws RequestError, which names the field at fault and repeats nothing of its value. */
  parse(body: Uint8Array): ParsedRequest;
  stream(envelope: Envelope, request: TextRequest): StreamRenderer;
  plain(envelope: Envelope, request: TextRequest): PlainRenderer;
  /** What ends a stream after its signed bytes: the signature event and the terminator. */
  signatureEvent(envelope: Envelope, signed: SignedParts): string;
  /** Error inside a stream that has begun. No terminator follows it. */
  streamError(error: ApiError): string;
}
