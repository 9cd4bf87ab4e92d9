/** Finds an update and prepares it, for the command and the daemon. */
import { compareVersions, type Release } from '@inference/protocol';
import type { Progress } from '../models/store/download.js';
import { prepare } from './download-release.js';
import { currentVersion } from './layout.js';
import { fetchRelease, type ReleaseQuery } from './releases.js';
import type { BrokenVersion } from './trial.js';
import { brokenVersions } from './trial.js';
import { lockUpdates } from './update-lock.js';

/** Compares the offered release with the installed one. Throws UpdateError. */
export async function checkForUpdate(question: ReleaseQuery, prefix: string | null, installed: string): Promise<UpdateChoice> {
  const offered = await fetchRelease(question);
  const current = (prefix === null ? null : currentVersion(prefix)) ?? installed;
  // An explicitly named version is accepted even if known to fail.
  const broken = prefix === null || question.version !== null ? [] : brokenVersions(prefix);
  return chooseUpdate(offered, current, broken);
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
  | { readonly kind: 'current' }
  | { readonly kind: 'broken'; readonly version: string; readonly reason: string };

/** Rejects older releases: replaying an old signed release would bring back its faults. */
export function chooseUpdate(offered: Release | null, installed: string, broken: readonly BrokenVersion[]): UpdateChoice {
  if (offered === null || compareVersions(offered.version, installed) <= 0) return { kind: 'current' };
  const known = broken.find(({ version }) => version === offered.version);
  return known === undefined ? { kind: 'update', release: offered } : { kind: 'broken', version: known.version, reason: known.reason };
}
