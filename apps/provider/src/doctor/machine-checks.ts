/** Checks of this machine: data directory, disk, whether a model can be read and fits, host condition, and sleep settings. */

import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { ModelMemorySettings } from '../config/model-memory.js';
import { readCondition } from '../host/condition/condition-monitor.js';
import { readHostFacts } from '../host/hardware/host-facts.js';
import { memoryCeiling, memoryNeed, planCapacity } from '../models/capacity.js';
import { keepsF16, keptF16Text } from '../models/kv-cache-type.js';
import { readModelFacts } from '../models/model-facts.js';
import { type Finding, note, ok, problem, skipped } from './check.js';

/** Free bytes below which logs, updates and downloads may fail. */
const MIN_FREE_BYTES = 1 << 30;
const GIB = 2 ** 30;

export async function checkDataDirectory(dataDir: string): Promise<Finding[]> {
  const found = await stat(dataDir).catch(() => null);
  if (found === null)
    return [problem(`the data directory ${dataDir} does not exist`, 'Start the provider once, or use another --data-dir.')];
  if (!found.isDirectory()) return [problem(`${dataDir} is not a directory`, 'Use the --data-dir of the running provider.')];
  try {
    await access(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch {
    return [
      problem(`the data directory ${dataDir} cannot be written`, 'Restore the ownership (chown), and run the provider as the same user.'),
    ];
  }
  const key = await stat(join(dataDir, 'enclave')).catch(() => null);
  if (key !== null && (key.mode & 0o077) !== 0) {
    return [problem('other users can read the enclave folder', `Run: chmod 700 ${join(dataDir, 'enclave')}`)];
  }
  return [ok(`the data directory ${dataDir} can be used`)];
}

export async function checkDisk(dataDir: string): Promise<Finding[]> {
  const disk = await statfs(dataDir).catch(() => null);
  if (disk === null) return [skipped('the data directory could not be checked')];
  const free = disk.bavail * disk.bsize;
  const text = `${(free / GIB).toFixed(1)} GiB are free on the disk`;
  return [free < MIN_FREE_BYTES ? problem(text, 'Make room on the disk.') : ok(text)];
}

export interface CheckedModel {
  readonly path: string;
  readonly projectorPath: string | null;
}

/** @param model Null if the served model is unknown. */
export async function checkModel(model: CheckedModel | null, memorySettings: ModelMemorySettings): Promise<Finding[]> {
  if (model === null) return [skipped('the served model is unknown because the provider is not running; use --model')];
  let facts: ReturnType<typeof readModelFacts>;
  try {
    facts = readModelFacts(model.path, model.projectorPath);
  } catch (error) {
    return [problem(error instanceof Error ? error.message : 'the model cannot be read', 'Download the model again.')];
  }
  const { memoryBytes } = await readHostFacts();
  const { slots, context, kvCacheType, reserve } = memorySettings;
  const max = memoryCeiling(memoryBytes, reserve);
  const needed = memoryNeed(facts, planCapacity(facts, { slots, context, kvCacheType, budget: max }));
  const size = `${(facts.fileBytes / GIB).toFixed(2)} GiB${facts.vision === null ? '' : ', with vision'}`;
  if (needed > max) {
    return [
      problem(
        `the model ${facts.id} (${size}) does not fit into the memory for models`,
        'Serve a smaller model, or reserve less memory (reserve_gb in config.toml).',
      ),
    ];
  }
  const fitting = ok(`the model ${facts.id} (${size}) can be read and fits into memory`);
  if (!keepsF16(facts, kvCacheType)) return [fitting];
  return [fitting, note(keptF16Text(facts.id), 'None needed. Other models use the kv_cache_type of config.toml.')];
}

export async function checkCondition(): Promise<Finding[]> {
  const { thermal, memoryPressure, power } = await readCondition({ platform: process.platform, root: '/' });
  const findings: Finding[] = [];
  if (power === 'low_battery') findings.push(problem('the battery is low, so this Mac accepts no requests', 'Connect this Mac to power.'));
  if (power === 'battery') findings.push(note('runs on battery, so other machines are preferred', 'Connect this Mac to power.'));
  if (thermal === 'critical' || thermal === 'serious') {
    findings.push(note(`too warm (${thermal})`, 'Improve the cooling, or run fewer other programs.'));
  }
  if (memoryPressure !== 'normal') findings.push(note(`memory is short (${memoryPressure})`, 'Close programs, or serve a smaller model.'));
  return findings.length > 0 ? findings : [ok('cool, enough memory, and on mains power')];
}

const PMSET_MS = 3_000;

export async function checkSleep(platform: NodeJS.Platform): Promise<Finding[]> {
  if (platform !== 'darwin') return [skipped('sleep settings are checked on a Mac only')];
  const { stdout } = await promisify(execFile)('/usr/bin/pmset', ['-g', 'custom'], { timeout: PMSET_MS });
  return sleepFindings(parsePmset(stdout));
}

/** Key: source of power (`AC Power`, `Battery Power`), then name of the setting. */
type SleepSettings = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** Parses `pmset -g custom` (pmset(1)). Skips settings without a number. */
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

export function sleepFindings(settings: SleepSettings): Finding[] {
  const mains = settings['AC Power'];
  const minutes = mains?.sleep;
  if (mains === undefined || minutes === undefined) return [skipped('the sleep settings of this Mac are unknown')];
  const findings: Finding[] = [];
  if (minutes > 0) {
    const remedy = 'The agent prevents sleep while serving. For full availability: System Settings, Energy, prevent automatic sleeping.';
    findings.push(note(`on mains, this Mac sleeps after ${minutes} min of inactivity`, remedy));
  }
  if (mains.autorestart === 0) {
    findings.push(
      note(
        'does not restart automatically after a power failure',
        'System Settings, Energy, start up automatically after a power failure.',
      ),
    );
  }
  return findings.length > 0 ? findings : [ok('on mains, this Mac does not go to sleep')];
}
