/**
 * Trial of a new version: it must prove itself in a limited time, or the guard restores the previous version.
 *
 * A record in `trial.json` names both. `broken.json` lists versions that failed, which only the owner can choose again. Each step replaces one
 * file atomically, so that after a power loss either the old version or the trial continues.
 */
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { lazyValidator, ReleaseVersionSchema } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { currentVersion, point, presentVersions } from './layout.js';
import { UpdateError } from './releases.js';

const TrialSchema = Type.Object({
  version: ReleaseVersionSchema,
  previous: ReleaseVersionSchema,
  /** Milliseconds since 1970. */
  since: Type.Integer({ minimum: 0 }),
  starts: Type.Integer({ minimum: 0 }),
  /** Time for one start to be confirmed, in milliseconds. */
  patience_ms: Type.Integer({ minimum: 1 }),
});
export type Trial = Static<typeof TrialSchema>;

const BrokenSchema = Type.Array(Type.Object({ version: ReleaseVersionSchema, at: Type.Integer(), reason: Type.String() }), {
  maxItems: 100,
});
export type BrokenVersion = Static<typeof BrokenSchema>[number];

const trialRecord = lazyValidator(TrialSchema);
const brokenRecord = lazyValidator(BrokenSchema);

export const trialPath = (prefix: string): string => join(prefix, 'trial.json');
const brokenPath = (prefix: string): string => join(prefix, 'broken.json');

/** The trial of the current version, or null. Deletes any other record. */
export function readTrial(prefix: string): Trial | null {
  const value = readRecord(trialPath(prefix));
  if (value === undefined) return null;
  if (trialRecord().Check(value) && currentVersion(prefix) === value.version) return value;
  rmSync(trialPath(prefix), { force: true });
  return null;
}

/** The previous version's guard supervises the trial. */
export function beginTrial(prefix: string, version: string, previous: string, trialTimeoutMs: number, now: number): void {
  point(prefix, 'guard', previous);
  writeRecord(trialPath(prefix), { version, previous, since: now, starts: 0, patience_ms: trialTimeoutMs } satisfies Trial);
  point(prefix, 'current', version);
}

/** Counts a start before the start, so that a crash is counted too. */
export function countStart(prefix: string, trial: Trial): Trial {
  const counted = { ...trial, starts: trial.starts + 1 };
  writeRecord(trialPath(prefix), counted);
  return counted;
}

/** The current version stays current. */
export function endTrial(prefix: string): void {
  rmSync(trialPath(prefix), { force: true });
}

/** Records the version as failed, and restores the previous one if installed. */
export function rollBack(prefix: string, trial: Trial, reason: string, now: number): void {
  rememberBroken(prefix, { version: trial.version, at: now, reason });
  if (presentVersions(prefix).includes(trial.previous)) point(prefix, 'current', trial.previous);
  endTrial(prefix);
}

export function brokenVersions(prefix: string): readonly BrokenVersion[] {
  const value = readRecord(brokenPath(prefix));
  return brokenRecord().Check(value) ? value : [];
}

/** Permits another try of a failed version. */
export function forgetBroken(prefix: string, version: string): void {
  const left = brokenVersions(prefix).filter((one) => one.version !== version);
  writeRecord(brokenPath(prefix), left);
}

function rememberBroken(prefix: string, broken: BrokenVersion): void {
  const others = brokenVersions(prefix).filter(({ version }) => version !== broken.version);
  writeRecord(brokenPath(prefix), [...others, broken].slice(-100));
}

function readRecord(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? undefined : null;
  }
}

function writeRecord(path: string, value: unknown): void {
  const draft = `${path}.${process.pid}`;
  const file = openSync(draft, 'w', 0o600);
  try {
    writeSync(file, `${JSON.stringify(value)}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(draft, path);
}

/** Default time for one start to be confirmed. Large models load slowly. */
export const DEFAULT_TRIAL_TIMEOUT_MS = 5 * 60_000;
const POLL_INTERVAL_MS = 200;

/** Makes a version current, on trial. Throws {@link UpdateError} if not installed. */
export function switchTo(prefix: string, version: string, trialTimeoutMs: number, now: number): void {
  if (!presentVersions(prefix).includes(version)) throw new UpdateError(`version ${version} is not installed`);
  const previous = currentVersion(prefix);
  if (previous === version) return;
  if (previous === null) throw new UpdateError('the installation is damaged: run install.sh again');
  beginTrial(prefix, version, previous, trialTimeoutMs, now);
}

/** Resolves to whether this version is current after the trial, or to null if the trial outlasts the limit. */
export async function awaitTrialEnd(prefix: string, version: string, limitMs: number, signal: AbortSignal): Promise<boolean | null> {
  const deadline = performance.now() + limitMs;
  while (readTrial(prefix) !== null) {
    if (performance.now() > deadline) return null;
    await delay(POLL_INTERVAL_MS, undefined, { signal });
  }
  return currentVersion(prefix) === version;
}
