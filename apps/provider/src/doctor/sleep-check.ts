/** How this Mac goes to sleep when nothing keeps it awake (pmset(1)). While it serves, the agent does. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { type Finding, note, ok, skipped } from './check.js';

const PMSET_MS = 3_000;

export async function checkSleep(platform: NodeJS.Platform): Promise<Finding[]> {
  if (platform !== 'darwin') return [skipped('settings of sleep are looked at on a Mac only')];
  const { stdout } = await promisify(execFile)('/usr/bin/pmset', ['-g', 'custom'], { timeout: PMSET_MS });
  return judgeSleep(parsePmset(stdout));
}

/** Settings by source of power (`AC Power`, `Battery Power`), each a name and a number. */
export type SleepSettings = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** Of `pmset -g custom`. Lines that are no setting with a number are left out. */
export function parsePmset(text: string): SleepSettings {
  const sources: Record<string, Record<string, number>> = {};
  let current: Record<string, number> | null = null;
  for (const line of text.split('\n')) {
    const source = /^(\S[^:]*):\s*$/.exec(line)?.[1];
    if (source !== undefined) {
      current = {};
      sources[source] = current;
      continue;
    }
    const [, name, value] = /^\s+(\S(?:.*\S)?)\s+(-?\d+)\b/.exec(line) ?? [];
    if (current !== null && name !== undefined) current[name] = Number(value);
  }
  return sources;
}

export function judgeSleep(settings: SleepSettings): Finding[] {
  const mains = settings['AC Power'];
  const minutes = mains?.sleep;
  if (mains === undefined || minutes === undefined) return [skipped('pmset does not say how this Mac goes to sleep')];
  const findings: Finding[] = [];
  if (minutes > 0) {
    const remedy = 'It is kept awake while it serves. To be there at any time: System Settings, Energy, prevent automatic sleeping.';
    findings.push(note(`on mains, this Mac sleeps after ${minutes} min without work`, remedy));
  }
  if (mains.autorestart === 0) {
    findings.push(
      note('it does not start by itself after a power failure', 'System Settings, Energy, start up automatically after a power failure.'),
    );
  }
  return findings.length > 0 ? findings : [ok('on mains, this Mac does not go to sleep')];
}
