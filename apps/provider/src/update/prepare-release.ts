/** The whole way from the question to a version that lies ready: what the owner's command and the daemon by itself do alike. */
import { compareVersions, type Release } from '@inference/protocol';
import type { Progress } from '../models/library/download.js';
import { prepare } from './download-release.js';
import { currentVersion } from './layout.js';
import { fetchRelease, type ReleaseQuery } from './releases.js';
import type { BrokenVersion } from './trial.js';
import { brokenVersions } from './trial.js';
import { lockUpdates } from './update-lock.js';

/** What is on offer, held against what is installed. Throws UpdateError. */
export async function checkForUpdate(question: ReleaseQuery, prefix: string | null, installed: string): Promise<UpdateChoice> {
  const offered = await fetchRelease(question);
  const current = (prefix === null ? null : currentVersion(prefix)) ?? installed;
  // The owner who names a version wants just that one, be it known as broken.
  const broken = prefix === null || question.version !== null ? [] : brokenVersions(prefix);
  return chooseUpdate(offered, current, broken);
}

export interface ReadyOptions {
  readonly prefix: string;
  readonly release: Release;
  readonly onStep: (sentence: string) => void;
  readonly onProgress: (progress: Progress) => void;
  readonly signal: AbortSignal;
}

/** Throws UpdateError, also where another update is under way. */
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

/** An older release, which its maker once signed, is no update: whoever serves it again serves its faults. */
export function chooseUpdate(offered: Release | null, installed: string, broken: readonly BrokenVersion[]): UpdateChoice {
  if (offered === null || compareVersions(offered.version, installed) <= 0) return { kind: 'current' };
  const known = broken.find(({ version }) => version === offered.version);
  return known === undefined ? { kind: 'update', release: offered } : { kind: 'broken', version: known.version, reason: known.reason };
}
