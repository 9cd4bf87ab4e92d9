/** Finds an update and prepares it, for the command and the daemon. */
import { compareVersions, type Release, type RolloutNotice } from '@inference/protocol';
import type { Progress } from '../models/store/download.js';
import { prepare } from './download-release.js';
import { currentVersion } from './layout.js';
import { type AskingMachine, fetchRelease, type ReleaseQuery } from './releases.js';
import type { BrokenVersion } from './trial.js';
import { brokenVersions } from './trial.js';
import { lockUpdates } from './update-lock.js';

/** Compares the offered release with the installed one. Throws UpdateError. */
export async function checkForUpdate(
  question: Omit<ReleaseQuery, 'machine'> & { readonly machine: Omit<AskingMachine, 'failed'> },
  prefix: string | null,
  installed: string,
): Promise<UpdateChoice> {
  const failed = prefix === null ? null : (brokenVersions(prefix).at(-1)?.version ?? null);
  const { release, notice } = await fetchRelease({ ...question, machine: { ...question.machine, failed } });
  const current = (prefix === null ? null : currentVersion(prefix)) ?? installed;
  // An explicitly named version is accepted even if known to fail.
  const broken = prefix === null || question.version !== null ? [] : brokenVersions(prefix);
  return chooseUpdate(release, current, broken, notice);
}

interface ReadyOptions {
  readonly prefix: string;
  readonly release: Release;
  readonly onStep: (sentence: string) => void;
  readonly onProgress: (progress: Progress) => void;
  readonly signal: AbortSignal;
}

/** Prepares a release. Throws UpdateError, also while another update runs. */
export async function prepareRelease(readying: ReadyOptions): Promise<void> {
  const unlock = lockUpdates(readying.prefix);
  try {
    await prepare(readying);
  } finally {
    unlock();
  }
}

export type UpdateChoice =
  | { readonly kind: 'update'; readonly release: Release }
  /** `later`: newer version whose turn comes later; null: none. */
  | { readonly kind: 'current'; readonly later: RolloutNotice | null }
  | { readonly kind: 'broken'; readonly version: string; readonly reason: string };

/** Rejects older releases: replaying an old signed release would bring back its faults. */
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
  const known = broken.find(({ version }) => version === offered.version);
  return known === undefined ? { kind: 'update', release: offered } : { kind: 'broken', version: known.version, reason: known.reason };
}
