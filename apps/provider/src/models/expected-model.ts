/** Fit and speed of a model before its download, from size and name. The file's header later replaces both. */
import { estimatedTokensPerSecond, memoryCeiling, minMemoryNeed } from './capacity.js';

export interface ExpectedModel {
  readonly memoryBytes: number;
  readonly fits: boolean;
  /** Of one stream; null: unknown bandwidth. */
  readonly tokensPerSecond: number | null;
}

interface Machine {
  readonly memoryBytes: number;
  readonly bandwidthGbs: number;
  /** Bytes reserved for the owner; null: the default share. */
  readonly reserve: number | null;
}

/** `name`: repository or file name, which states the active parameters of mixture-of-experts models. */
export function expectedModel({ bytes, name }: { readonly bytes: number; readonly name: string }, machine: Machine): ExpectedModel {
  const memoryBytes = minMemoryNeed(bytes);
  return {
    memoryBytes,
    fits: memoryBytes <= memoryCeiling(machine.memoryBytes, machine.reserve),
    tokensPerSecond: estimatedTokensPerSecond({ activeBytes: bytes * activeShare(name) }, machine.bandwidthGbs),
  };
}

/** Share of the weights that one token reads: `30B-A3B` names 3 of 30 billion parameters. */
function activeShare(name: string): number {
  const [, total, active] = /(?:^|[^\d.])(\d+(?:\.\d+)?)B-A(\d+(?:\.\d+)?)B(?![a-z0-9])/i.exec(name) ?? [];
  const share = Number(active) / Number(total);
  return share > 0 && share < 1 ? share : 1;
}
