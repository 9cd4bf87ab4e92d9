/** `logs`: prints the log of a daemon that runs as a service, as text or as JSON lines. */

import { statSync } from 'node:fs';
import { follow, lastLines, logFile, outputFile } from '../../log/log-files.js';
import { logLineText } from '../../log/log-line.js';
import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { ownerOptions, UsageError } from '../input/owner-options.js';
import { print } from '../output/terminal.js';

export const logsCommand: Command = {
  name: 'logs',
  summary: 'Shows the log of the background provider.',
  usage: `logs [--data-dir DIR] [--lines N] [--follow] [--crash] [--json]

--follow prints new lines until Ctrl-C. --crash shows the output of failed starts
and crashes. The log never contains prompts or responses.`,
  run: logs,
};

const DEFAULT_LINES = 100;

async function logs(args: readonly string[]): Promise<number> {
  const more = { lines: { type: 'string', short: 'n' }, follow: { type: 'boolean', short: 'f' }, crash: { type: 'boolean' } } as const;
  const { dataDir, json, values } = ownerOptions(args, more);
  const count = values.lines === undefined ? DEFAULT_LINES : Number(values.lines);
  if (!Number.isInteger(count) || count < 0 || count > 1e6) throw new UsageError('--lines must be a whole number from 0 to 1,000,000.');
  const path = values.crash === true ? outputFile(dataDir) : logFile(dataDir);
  const text = (line: string): string => (json ? line : logLineText(line));
  const isThere = statSync(path, { throwIfNoEntry: false }) !== undefined;
  if (!isThere && values.follow !== true) {
    process.stderr.write(`There is no log yet. The provider has not run as a service with the data directory ${dataDir}.\n`);
    return EXIT.needsOwner;
  }
  if (values.follow !== true) {
    const last = lastLines(path, count);
    if (last.length > 0) await print(last.map(text));
    return EXIT.fine;
  }
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
  process.stdout.once('error', () => stop.abort());
  for await (const lines of follow(path, stop.signal, { lastLineCount: count })) await print(lines.map(text));
  return EXIT.fine;
}
