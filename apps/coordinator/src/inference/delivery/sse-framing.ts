/** `SseFraming`: `StreamFraming` for server-sent events. Comments keep the stream alive, and the signature or an error ends it. */
import {
  type AnswerFormat,
  type ApiError,
  type ResponseMetadata,
  type SignatureForm,
  type SignedParts,
  SSE_COMMENT,
} from '@inference/formats';
import { ignoredHeader, signatureHeaders } from './response-headers.js';
import type { StreamFraming } from './stream-framing.js';

interface SseOptions {
  readonly answerFormat: AnswerFormat;
  readonly responseMetadata: ResponseMetadata;
  readonly signatureForm: SignatureForm;
  /** Names of request members that have no effect. */
  readonly ignored: readonly string[];
  readonly requestId: string;
  /** Whether the client accepts HTTP trailers (`TE: trailers`), which then repeat the signature. */
  readonly trailers: boolean;
}

const NEW_LINE = 0x0a;

export class SseFraming implements StreamFraming {
  readonly #options: SseOptions;
  #lastByte = NEW_LINE;
  #secondLastByte = NEW_LINE;
  readonly keepAlive = SSE_COMMENT;

  constructor(options: SseOptions) {
    this.#options = options;
  }

  get headers(): Readonly<Record<string, string>> {
    const { ignored, trailers } = this.#options;
    return {
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-cache',
      'X-Accel-Buffering': 'no',
      ...ignoredHeader(ignored),
      ...(trailers ? { Trailer: 'X-Se-Signature, X-Response-Hash, X-Inference-Receipt, X-Inference-Receipt-Signature' } : {}),
    };
  }

  take(bytes: Uint8Array): Uint8Array {
    this.#secondLastByte = bytes.at(-2) ?? this.#lastByte;
    this.#lastByte = bytes.at(-1) ?? this.#lastByte;
    return bytes;
  }

  get isBetweenUnits(): boolean {
    return this.#lastByte === NEW_LINE && this.#secondLastByte === NEW_LINE;
  }

  ending(signed: SignedParts, model: string | null): ReturnType<StreamFraming['ending']> {
    const { answerFormat, responseMetadata, signatureForm, trailers } = this.#options;
    const metadata = { ...responseMetadata, model: model ?? responseMetadata.model };
    return { bytes: answerFormat.signatureEvent(metadata, signed, signatureForm), trailers: trailers ? signatureHeaders(signed) : null };
  }

  /** Error event. Blank lines first end an incomplete event of the provider, which would otherwise absorb the error. */
  failure(error: ApiError): string {
    const { answerFormat, requestId } = this.#options;
    return (this.isBetweenUnits ? '' : '\n\n') + answerFormat.streamError(error, requestId);
  }
}
