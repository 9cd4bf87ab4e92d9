/** The whole way from the question to a version that lies ready: what the owner's command and the daemon by itself do alike. */
import type { Release } from '@inference/protocol';
import type { Progress } from '../models/library/download.js';
import { type Choice, choose } from './choose.js';
import { currentVersion } from './layout.js';
import { prepare } from './prepare.js';
import { fetchRelease, type ReleaseQuestion } from './releases.js';
import { brokenVersions } from './trial.js';
import { lockUpdates } from './update-lock.js';

/** What is on offer, held against what is installed. Throws UpdateError. */
export async function lookForRelease(question: ReleaseQuestion, prefix: string | null, installed: string): Promise<Choice> {
  const offered = await fetchRelease(question);
  const current = (prefix === null ? null : currentVersion(prefix)) ?? installed;
  // The owner who names a version wants just that one, be it known as broken.
  const broken = prefix === null || question.version !== null ? [] : brokenVersions(prefix);
  return choose(offered, current, broken);
}

export interface Readying {
  readonly prefix: string;
  readonly release: Release;
  readonly onStep: (sentence: string) => void;
  readonly onProgress: (progress: Progress) => void;
  readonly signal: AbortSignal;
}

/** Throws UpdateError, also where another update is under way. */
export async function makeReady(readying: Readying): Promise<void> {
  const unlock = lockUpdates(readying.prefix);
  try {
    await prepare(readying);
  } finally {
    unlock();
  }
}
