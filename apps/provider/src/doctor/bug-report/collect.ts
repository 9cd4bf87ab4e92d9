/** `collect`: the parts of a bug report, as named texts, all redacted. */
import { existsSync, lstatSync, readdirSync } from 'node:fs';
import { release } from 'node:os';
import { join } from 'node:path';
import type { Config } from '../../config/config.js';
import type { DaemonStatus } from '../../control/daemon-status.js';
import { readHostFacts } from '../../host/hardware/host-facts.js';
import { lastLines, logFile, outputFile } from '../../log/log-files.js';
import type { Installation } from '../../update/installation.js';
import { currentVersion, presentVersions } from '../../update/layout.js';
import { brokenVersions, readTrial } from '../../update/trial.js';
import type { CheckResult } from '../check.js';
import type { Redactor } from './redact.js';

export interface ReportPart {
  /** File name in the archive. */
  readonly name: string;
  readonly what: string;
  readonly text: string;
}

export interface Sources {
  readonly dataDir: string;
  readonly found: Installation;
  /** Null if the file is unreadable. */
  readonly config: Config | null;
  readonly status: DaemonStatus | null;
  readonly checks: readonly CheckResult[];
  readonly redactor: Redactor;
}

const LOG_LINES = 2_000;
const CRASH_LINES = 400;
const MAX_FILES = 500;

export async function collect(sources: Sources): Promise<ReportPart[]> {
  const { dataDir, found, config, status, checks, redactor } = sources;
  const json = (value: unknown): string => `${JSON.stringify(redactor.value(value), null, 2)}\n`;
  const lines = (path: string, max: number, redact: (line: string, redactor: Redactor) => string): string =>
    lastLines(path, max)
      .map((line) => `${redact(line, redactor)}\n`)
      .join('');
  const parts: ReportPart[] = [
    { name: 'machine.json', what: 'versions, the kind of machine, how the agent was installed', text: json(await machineOf(found)) },
    { name: 'doctor.json', what: 'results of doctor', text: json(checks) },
    { name: 'files.txt', what: 'names, sizes and modes of the files in the data directory', text: redactor.text(listing(dataDir)) },
  ];
  if (config !== null) parts.push({ name: 'settings.json', what: 'the settings, without comments', text: json(config) });
  if (status !== null) parts.push({ name: 'status.json', what: "the running provider's status", text: json(status) });
  const log = lines(logFile(dataDir), LOG_LINES, redactLogLine);
  if (log !== '') parts.push({ name: 'log.jsonl', what: `the last ${LOG_LINES} lines of the log: events, codes and counts`, text: log });
  const crash = lines(outputFile(dataDir), CRASH_LINES, redactCrashLine);
  if (crash !== '') parts.push({ name: 'crash.txt', what: 'crash locations: stack frames, without messages', text: crash });
  return parts;
}

async function machineOf(found: Installation): Promise<object> {
  const { chip, cpuCores, gpuCores, memoryBytes } = await readHostFacts();
  const own = found.kind === 'own' ? found.prefix : null;
  return {
    agent: found.version,
    installed_by: found.kind,
    node: process.versions.node,
    system: `${process.platform} ${process.arch} ${release()}`,
    chip,
    cpu_cores: cpuCores,
    gpu_cores: gpuCores,
    memory_gib: Math.round(memoryBytes / 2 ** 30),
    ...(own === null
      ? {}
      : { current: currentVersion(own), versions: presentVersions(own), trial: readTrial(own), broken: brokenVersions(own) }),
  };
}

function listing(dataDir: string): string {
  const lines: string[] = [];
  const visit = (folder: string, below: string): void => {
    for (const name of existsSync(folder) ? readdirSync(folder).sort() : []) {
      if (lines.length >= MAX_FILES) return;
      const path = join(folder, name);
      const found = lstatSync(path);
      const { mode, size } = found;
      lines.push(`${(mode & 0o7777).toString(8).padStart(4, '0')} ${String(size).padStart(14)} ${below}${name}`);
      if (found.isDirectory()) visit(path, `${below}${name}/`);
    }
  };
  visit(dataDir, '');
  return lines.map((line) => `${line}\n`).join('');
}

const PERMITTED_MEMBERS: ReadonlySet<string> = new Set([
  ...['level', 'time', 'event', 'msg', 'version', 'kind', 'code', 'reason', 'detail', 'problem', 'status', 'outcome', 'state'],
  ...['provider_id', 'job_id', 'model', 'models', 'slots', 'coordinator', 'trust_level', 'routable', 'gaps', 'changed', 'needs_restart'],
  ...['ms', 'retry_in_ms', 'delay_ms', 'jump_ms', 'finish_reason', 'prompt_tokens', 'completion_tokens', 'images'],
  ...['thermal', 'memoryPressure', 'power', 'path', 'expires_at', 'until', 'reasons'],
]);

/** A line that is not JSON is reduced to its length. */
export function redactLogLine(line: string, redactor: Redactor): string {
  try {
    const entry: unknown = JSON.parse(line);
    if (typeof entry === 'object' && entry !== null) return JSON.stringify(redactor.value(entry, PERMITTED_MEMBERS));
  } catch {}
  return JSON.stringify({ left_out: line.length });
}

/** Retains stack frames, error names and the Node version. Other lines are reduced to their length. */
export function redactCrashLine(line: string, redactor: Redactor): string {
  if (/^\s+at /.test(line) || /^Node\.js v[\d.]+$/.test(line)) return redactor.text(line);
  const errorName = /^(?:Uncaught )?([A-Z][A-Za-z]*(?:Error|Exception))\b/.exec(line)?.[1];
  const prefix = errorName === undefined ? '' : `${errorName}: `;
  return line.trim() === '' ? '' : `${prefix}<${line.length} characters left out>`;
}
