/**
 * `uninstall`: signs the machine out and removes the service, the installed program and its command; on request also data and key.
 *
 * A program that another installer owns, such as npm, is not removed.
 */
import { existsSync } from 'node:fs';
import { byteSizeText } from '../../models/byte-size-text.js';
import { labelOf, serviceManager } from '../../service/choose-manager.js';
import { systemdUnitOf } from '../../service/systemd-unit-of.js';
import { endMenuBar, endService, type Part, partsOf, removePart, signOut } from '../../service/uninstall.js';
import { installation, removalAdvice } from '../../update/installation.js';
import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { unitText } from '../foreign-daemon.js';
import { type OwnerOptions, ownerOptions, UsageError } from '../input/owner-options.js';
import { confirm } from '../input/prompt.js';
import { answeringDaemon } from '../input/service-options.js';
import { print } from '../output/terminal.js';

export const uninstallCommand: Command = {
  name: 'uninstall',
  summary: 'Removes the agent from this machine.',
  usage: `uninstall [--keep-data | --delete-data] [--delete-key] [--yes] [--dry-run]
          [--data-dir DIR] [--json]

Stops the service, signs this machine out, and removes the program and its command
(for npm, Homebrew, a package or a clone, it prints how to remove the program).
Settings, models and logs are kept unless you use --delete-data or confirm the prompt.
The key in the enclave folder is this machine's identity and carries its reputation;
only --delete-key removes it. A new installation that finds the key is the
same provider. --yes skips prompts; --dry-run only lists.`,
  run: uninstall,
};

const OPTIONS = {
  'keep-data': { type: 'boolean' },
  'delete-data': { type: 'boolean' },
  'delete-key': { type: 'boolean' },
  yes: { type: 'boolean' },
  'dry-run': { type: 'boolean' },
} as const;

async function uninstall(args: readonly string[]): Promise<number> {
  const { dataDir, json, values } = ownerOptions(args, OPTIONS);
  if (values['keep-data'] === true && values['delete-data'] === true)
    throw new UsageError('--keep-data and --delete-data cannot be used together.');
  const found = installation();
  const isDryRun = values['dry-run'] === true;
  const shouldAsk = values.yes !== true && !isDryRun;
  if (shouldAsk && !process.stdin.isTTY) throw new UsageError('Without a terminal, use --yes, with --keep-data or --delete-data.');

  const all = partsOf(found, dataDir);
  const kinds = await chooseKinds(all, values, shouldAsk);
  if (kinds === null) return EXIT.needsOwner;
  const removed = all.filter(({ kind }) => kinds.has(kind));
  const retained = () => all.filter(({ kind, path }) => !kinds.has(kind) && existsSync(path));
  const notes: string[] = [];
  if (!isDryRun) {
    const manager = await serviceManager(dataDir, undefined);
    notes.push(...(await endService(manager, labelOf(dataDir))));
    notes.push(...(await endMenuBar(dataDir)));
    const problem = await runningText(dataDir);
    if (problem !== null) {
      process.stderr.write(`${problem} The program and its data were not removed.\n`);
      return EXIT.needsOwner;
    }
    notes.push(...(await signOut(found, dataDir)));
    for (const part of removed) removePart(part);
  }
  const advice = removalAdvice(found);
  if (advice !== null) notes.push(advice);
  if (json)
    await print([
      JSON.stringify({ removed: removed.map(({ path }) => path), kept: retained().map(({ path }) => path), dry_run: isDryRun, notes }),
    ]);
  else await print([...linesOf(removed, isDryRun ? 'Would be removed:' : 'Removed:'), ...linesOf(retained(), 'Kept:'), ...notes]);
  return EXIT.fine;
}

/** Kinds to remove. Null if the owner declined. */
async function chooseKinds(
  all: readonly Part[],
  values: OwnerOptions['values'],
  shouldAsk: boolean,
): Promise<ReadonlySet<Part['kind']> | null> {
  const kinds = new Set<Part['kind']>(['program', 'session']);
  if (values['delete-key'] === true) kinds.add('key');
  if (values['delete-data'] === true) kinds.add('data');
  if (!shouldAsk) return kinds;
  await print(
    linesOf(
      all.filter(({ kind }) => kind === 'program' || kind === 'session'),
      'This will be removed:',
    ),
  );
  if (!(await confirm('Remove the agent from this machine?'))) return null;
  const data = all.filter(({ kind }) => kind === 'data');
  if (data.length > 0 && !kinds.has('data') && values['keep-data'] !== true) {
    await print(linesOf(data, 'Data:'));
    if (await confirm('Remove the data as well?')) kinds.add('data');
  }
  return kinds;
}

/** Null if no daemon runs outside the service. */
async function runningText(dataDir: string): Promise<string | null> {
  const daemon = await answeringDaemon(dataDir);
  if (daemon === null) return null;
  const unit = systemdUnitOf(daemon.pid);
  return unit === null
    ? `The provider is still running (process ${daemon.pid}). Stop the process, then run this command again.`
    : `${unitText('stop', unit, daemon.pid)}. Then run this command again.`;
}

function linesOf(parts: readonly Part[], title: string): string[] {
  if (parts.length === 0) return [];
  return [title, ...parts.map(({ path, what, bytes }) => `  ${path} (${what}${bytes === null ? '' : `, ${byteSizeText(bytes)}`})`)];
}
