/**
 * `StreamFraming` defines what the coordinator adds to a provider's stream: headers, keep-alives and the last bytes.
 *
 * Implemented for server-sent events (`SseFraming`) and for sealed answers (`SealedFraming`).
 */
import type { ApiError, SignedParts } from '@inference/formats';

export interface StreamFraming {
  /** Headers in addition to those common to all streams. */
  readonly headers: Readonly<Record<string, string>>;
  /** Takes the provider's next bytes. Returns the bytes to write now, without those withheld for `ending`. */
  take(bytes: Uint8Array): Uint8Array;
  /** Whether the bytes so far end at a point where a keep-alive may follow. */
  readonly isBetweenUnits: boolean;
  /** Bytes without meaning to the client, sent while the provider is silent. */
  readonly keepAlive: Uint8Array | string;
  /** Last bytes of a verified stream, and its HTTP trailers, if any. `model` is the answering model. */
  ending(
    signed: SignedParts,
    model: string | null,
  ): { readonly bytes: Uint8Array | string; readonly trailers: Readonly<Record<string, string>> | null };
  /** Last bytes of a failed stream. May be empty. */
  failure(error: ApiError): Uint8Array | string;
}
