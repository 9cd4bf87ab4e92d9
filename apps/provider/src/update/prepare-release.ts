/** `checkForUpdate` asks the coordinator for an update, and `prepareRelease` installs it beside the current version, without a switch. */
import { compareVersions, type Release, type RolloutNotice } from '@inference/protocol';
import type { Progress } from '../models/store/transfer.js';
import { prepare } from './download-release.js';
import { currentVersion } from './layout.js';
import { type AskingMachine, fetchRelease, type ReleaseQuery } from './releases.js';
import type { BrokenVersion } from './trial.js';
import { brokenVersions } from './trial.js';
import { lockUpdates } from './update-lock.js';

/**
 * Asks the coordinator for a release, and compares it with the installed version. Throws UpdateError.
 *
 * @param prefix Folder of the installation; null if another installer owns it.
 * @param installed Version of this program.
 */
export async function checkForUpdate(
  query: Omit<ReleaseQuery, 'machine'> & { readonly machine: Omit<AskingMachine, 'failed'> },
  prefix: string | null,
  installed: string,
): Promise<UpdateChoice> {
  const failed = prefix === null ? null : (brokenVersions(prefix).at(-1)?.version ?? null);
  const { release, notice } = await fetchRelease({ ...query, machine: { ...query.machine, failed } });
  const current = (prefix === null ? null : currentVersion(prefix)) ?? installed;
  // A version named by the owner is accepted even after an earlier failure.
  const broken = prefix === null || query.version !== null ? [] : brokenVersions(prefix);
  return chooseUpdate(release, current, broken, notice);
}

interface PrepareOptions {
  readonly prefix: string;
  readonly release: Release;
  readonly onStep: (sentence: string) => void;
  readonly onProgress: (progress: Progress) => void;
  readonly signal: AbortSignal;
}

/** Downloads, verifies and unpacks a release. Throws UpdateError, also while another update runs. */
export async function prepareRelease(options: PrepareOptions): Promise<void> {
  const unlock = lockUpdates(options.prefix);
  try {
    await prepare(options);
  } finally {
    unlock();
  }
}

export type UpdateChoice =
  | { readonly kind: 'update'; readonly release: Release }
  /** The installed version stays. `later` is a newer version that the rollout does not offer to this machine yet, or null. */
  | { readonly kind: 'current'; readonly later: RolloutNotice | null }
  /** The offered version failed on this machine before. */
  | { readonly kind: 'broken'; readonly version: string; readonly reason: string };

/** Never chooses an older release: an attacker could offer an old signed release to bring back its faults. */
export function chooseUpdate(
  offered: Release | null,
  installed: string,
  broken: readonly BrokenVersion[],
  notice: RolloutNotice | null,
): UpdateChoice {
  if (offered === null || compareVersions(offered.version, installed) <= 0) {
    const later = notice !== null && compareVersions(notice.version, installed) > 0 ? notice : null;
    const failed = broken.find(({ version }) => version === later?.version);
    return failed === undefined ? { kind: 'current', later } : { kind: 'broken', version: failed.version, reason: failed.reason };
  }
  const failed = broken.find(({ version }) => version === offered.version);
  return failed === undefined ? { kind: 'update', release: offered } : { kind: 'broken', version: failed.version, reason: failed.reason };
}
