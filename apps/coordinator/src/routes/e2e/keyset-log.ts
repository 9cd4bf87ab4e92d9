/** Where keysets are made public beyond this network's word. */
import type { E2eKeysetLog } from '@inference/protocol';

export interface KeysetLog {
  /** Appends a leaf for these bytes (`keysetLeafBytes`). Null: the log cannot take it now, and the keyset is served without proof. */
  publish(leafBytes: Uint8Array): Promise<E2eKeysetLog | null>;
}
