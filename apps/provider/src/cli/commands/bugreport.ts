/** `bugreport`: writes an archive for diagnosis, with personal data removed. Without `--json`, lists its contents before writing. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, hostname, tmpdir, userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import { collect, type ReportPart } from '../../doctor/bug-report/collect.js';
import { Redactor } from '../../doctor/bug-report/redact.js';
import { examine } from '../../doctor/examine.js';
import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { type OwnerOptions, ownerOptions, UsageError } from '../input/owner-options.js';
import { confirm } from '../input/prompt.js';
import { print, wrapped } from '../output/terminal.js';
import { doctorTargetOf } from './doctor.js';

export const bugreportCommand: Command = {
  name: 'bugreport',
  summary: 'Collects diagnostics in an archive.',
  usage: `bugreport [--out FILE.tar.gz] [--list] [--yes] [--data-dir DIR] [--json]

The archive contains no prompts, responses, keys, tokens, serial numbers, personal names or
network addresses. Read the archive before you share it. --list only lists the contents; --yes skips the question.
Only you can read the file, and nothing is sent anywhere.`,
  run: bugreport,
};

async function bugreport(args: readonly string[]): Promise<number> {
  const options = ownerOptions(args, { out: { type: 'string' }, list: { type: 'boolean' }, yes: { type: 'boolean' } });
  const { json, values } = options;
  const onlyLists = values.list === true;
  if (!onlyLists && values.yes !== true && !process.stdin.isTTY) throw new UsageError('Without a terminal, use --yes or --list.');
  const path = resolve(typeof values.out === 'string' ? values.out : `inference-provider-report-${fileTimestamp(new Date())}.tar.gz`);
  if (!onlyLists && existsSync(path)) throw new UsageError(`${path} already exists.`);

  const parts = await report(options);
  const contents = parts.map(({ name, what, text }) => ({ name, what, bytes: Buffer.byteLength(text) }));
  if (!json)
    await print([
      'Contents of the report:',
      ...contents.flatMap(({ name, what, bytes }) => wrapped(`  ${name.padEnd(14)} `, `${what} (${bytes} bytes)`)),
    ]);
  if (onlyLists) {
    if (json) await print([JSON.stringify({ path: null, contents })]);
    return EXIT.fine;
  }
  // Declined: no report was written.
  if (values.yes !== true && !(await confirm(`Write the report to ${path}?`))) return EXIT.needsOwner;
  await write(path, parts);
  await print(json ? [JSON.stringify({ path, contents })] : [`Wrote ${path}. Read it before you share it.`]);
  return EXIT.fine;
}

/** Runs the checks of `doctor`, and collects the report's files. */
async function report(options: OwnerOptions): Promise<ReportPart[]> {
  const target = doctorTargetOf(options);
  const { checks, status } = await examine(target);
  const serial = status?.coordinator_view?.serial_number ?? '';
  const secrets = [...(serial === '' ? [] : [serial]), ...secretsIn(join(options.dataDir, 'account.json'))];
  const redactor = new Redactor({ home: homedir(), user: userInfo().username, host: hostname(), secrets });
  return await collect({ ...target, checks, status, redactor });
}

/** Strings of a JSON file that may be tokens: those of at least 16 characters, except URLs. Empty if the file is unreadable. */
function secretsIn(path: string): string[] {
  try {
    const texts: string[] = [];
    JSON.parse(readFileSync(path, 'utf8'), (_name, value: unknown) => {
      if (typeof value === 'string' && value.length >= 16) texts.push(value);
      return value;
    });
    return texts.filter((text) => !/^(?:https?|wss?):/.test(text));
  } catch {
    return [];
  }
}

async function write(path: string, parts: readonly ReportPart[]): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'report-'));
  try {
    for (const { name, text } of parts) writeFileSync(join(folder, name), text, { mode: 0o600 });
    // `tar` would create a file that others may read.
    writeFileSync(path, '', { mode: 0o600, flag: 'wx' });
    await pack(path, folder, parts);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A partial archive is removed. */
async function pack(path: string, folder: string, parts: readonly ReportPart[]): Promise<void> {
  const names = parts.map(({ name }) => name);
  try {
    // Loaded on demand, because most commands pack nothing.
    const { create } = await import('tar');
    await create({ file: path, cwd: folder, gzip: true, portable: true }, names);
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  }
}

function fileTimestamp(now: Date): string {
  return now.toISOString().slice(0, 16).replace(/[-:]/g, '').replace('T', '-');
}
