/** Creates the verifier of the coordinator's transparency log, with the log and witness keys of the policy. */
import { LogVerifier as CheckpointLogVerifier, lazyValidator, StoredCheckpointSchema, TILE_WIDTH, tilePath } from '@inference/protocol';
import { nobleLogCrypto } from '@inference/verifier';
import { type Policy, PolicyError } from '../policy/policy.js';
import { download } from './download.js';
import type { KeysetSource } from './keyset.js';
import { type LogVerifier, logVerifierFrom } from './log-verifier.js';

/** Maximum age of checkpoints and cosignatures, in milliseconds. Longer than the 30 minutes for which a keyset is used. */
const MAX_CHECKPOINT_AGE_MS = 60 * 60_000;
const MAX_TILE_BYTES = 32 * TILE_WIDTH;

const storedCheckpoint = lazyValidator(StoredCheckpointSchema);

/**
 * Creates the default log verifier, which downloads tiles. A missing tile is refused as `split_view`.
 *
 * @throws {PolicyError} The policy has no `logKey`.
 */
export function coordinatorLog({ fetch, base }: KeysetSource, policy: Policy): LogVerifier {
  const { logKey, logWitnesses = [], logQuorum = majorityOf(logWitnesses.length) } = policy;
  if (logKey === undefined) throw new PolicyError('logKey', 'is missing: log: "required" needs the key of the log');
  const checkpoints = new CheckpointLogVerifier({
    crypto: nobleLogCrypto,
    policy: { key: logKey, witnesses: logWitnesses, minCosignatures: logQuorum, maxAgeMs: MAX_CHECKPOINT_AGE_MS },
    readTile: (tile) => download(fetch, `${base}/e2e/log/${tilePath(tile)}`, { maxBytes: MAX_TILE_BYTES, whenMissing: 'split_view' }),
  });
  return logVerifierFrom(nobleLogCrypto, {
    verify(leaf, stored: unknown, now) {
      if (stored === null || storedCheckpoint().Check(stored)) return checkpoints.verify(leaf, stored, now);
      throw new Error('The stored checkpoint of the transparency log is not valid. Restore or delete the state.');
    },
    includes: (entry, index, tree) => checkpoints.includes(entry, index, tree),
    compareCheckpoint: (note, tree) => checkpoints.compareCheckpoint(note, tree),
  });
}

function majorityOf(count: number): number {
  return count === 0 ? 0 : Math.floor(count / 2) + 1;
}
