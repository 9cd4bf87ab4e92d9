/** Verification of the transparency log, as the client uses it. */
import type { E2eKeyset, E2eLogHead } from '@inference/protocol';

export interface AcceptedKeyset {
  /** Tree head that requests carry, so that providers can compare theirs. */
  readonly head: E2eLogHead;
  /** State to pass to the next verification. */
  readonly state: string;
}

export interface LogVerifier {
  /**
   * Verifies the checkpoint's signature and age, its consistency with the last accepted state (null: none), and the inclusion of
   * the keyset's leaf. Throws E2ERefused `stale` or `split_view`. `now` in milliseconds.
   */
  verifyKeyset(keyset: E2eKeyset, state: string | null, now: number): Promise<AcceptedKeyset> | AcceptedKeyset;
  /** Time of the leaf of a provider, in milliseconds; null when the log has none. */
  loggedAt(logIndex: number): Promise<number | null> | number | null;
}
