/** `expectedModel` estimates memory and speed of a model before its download, from size and name. */
import { estimatedTokensPerSecond, memoryCeiling, minMemoryNeed } from './capacity.js';

export interface ExpectedModel {
  readonly memoryBytes: number;
  readonly fits: boolean;
  /** Decode speed of one sequence. Null if the memory bandwidth is unknown. */
  readonly tokensPerSecond: number | null;
}

interface Machine {
  readonly memoryBytes: number;
  /** Memory bandwidth in GB/s; 0 if unknown. */
  readonly bandwidthGbs: number;
  /** Bytes reserved for the owner. If null, the default share applies. */
  readonly reserve: number | null;
}

interface Download {
  /** Of all files, a projector included. */
  readonly bytes: number;
  readonly projectorBytes?: number;
  /** Repository or file name, which states the active parameters of mixture-of-experts models. */
  readonly name: string;
}

/** Assumed memory to encode one image: about that of 4,096 tokens with the projector of an 8-billion-parameter model. */
const IMAGE_BYTES = 1e9;

export function expectedModel({ bytes, projectorBytes = 0, name }: Download, machine: Machine): ExpectedModel {
  const weightBytes = bytes - projectorBytes;
  const memoryBytes = minMemoryNeed(weightBytes) + (projectorBytes === 0 ? 0 : projectorBytes + IMAGE_BYTES);
  return {
    memoryBytes,
    fits: memoryBytes <= memoryCeiling(machine.memoryBytes, machine.reserve),
    tokensPerSecond: estimatedTokensPerSecond({ activeBytes: weightBytes * activeShare(name) }, machine.bandwidthGbs),
  };
}

/** Share of the weights read per token: `30B-A3B` names 3 of 30 billion parameters. */
function activeShare(name: string): number {
  const [, total, active] = /(?:^|[^\d.])(\d+(?:\.\d+)?)B-A(\d+(?:\.\d+)?)B(?![a-z0-9])/i.exec(name) ?? [];
  const share = Number(active) / Number(total);
  return share > 0 && share < 1 ? share : 1;
}
