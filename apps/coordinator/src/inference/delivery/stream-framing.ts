/** The framing of a stream's bytes: which headers it has, and what the coordinator may add to it. */
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
