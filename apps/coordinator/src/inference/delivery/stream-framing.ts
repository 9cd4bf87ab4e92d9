/**
 * `StreamFraming`, implemented for server-sent events and for sealed frames: the headers of a stream, its keep-alive, and its last
 * bytes.
 */
import type { ApiError, SignedParts } from '@inference/formats';

export interface StreamFraming {
  /** Headers beside those of every stream. */
  readonly headers: Readonly<Record<string, string>>;
  /** Takes the provider's next bytes, in order. Returns those to write now; withheld ones belong to the ending. */
  take(bytes: Uint8Array): Uint8Array;
  /** Whether all bytes so far end where a keep-alive may follow. */
  readonly isBetweenUnits: boolean;
  readonly keepAlive: Uint8Array | string;
  /** Last bytes of a verified stream. `model`: the model that answered. */
  ending(
    signed: SignedParts,
    model: string | null,
  ): { readonly bytes: Uint8Array | string; readonly trailers: Readonly<Record<string, string>> | null };
  /** Last bytes of a failed stream; empty: none may follow. */
  failure(error: ApiError): Uint8Array | string;
}
