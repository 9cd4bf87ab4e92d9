/**
 * `StreamFraming` defines the parts of a stream that depend on its format: headers, keep-alive and last bytes.
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
  readonly keepAlive: Uint8Array | string;
  /** Last bytes of a verified stream, which `model` answered. */
  ending(
    signed: SignedParts,
    model: string | null,
  ): { readonly bytes: Uint8Array | string; readonly trailers: Readonly<Record<string, string>> | null };
  /** Last bytes of a failed stream. May be empty. */
  failure(error: ApiError): Uint8Array | string;
}
