/**
 * `uninstall`: signs the machine out and removes the service, the installed program and its command; on request also data and key. npm
 * and clones keep the program.
 */
import { existsSync } from 'node:fs';
import { byteSizeText } from '../../models/byte-size-text.js';
import { labelOf, serviceManager } from '../../service/choose-manager.js';
import { endMenuBar, endService, type Part, partsOf, removePart, signOut } from '../../service/uninstall.js';
import { installation, removalAdvice } from '../../update/installation.js';
import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { ownerOptions, UsageError } from '../input/owner-options.js';
import { confirm } from '../input/prompt.js';
import { runningDaemon } from '../input/service-options.js';
import { print } from '../output/terminal.js';

export const uninstallCommand: Command = {
  name: 'uninstall',
  summary: 'Removes the agent from this machine.',
  usage: `uninstall [--keep-data | --delete-data] [--delete-key] [--yes] [--dry-run]
          [--data-dir DIR] [--json]

Stops the service, signs this machine out, and removes the program and its command
(an installation by npm or a clone prints what is left to do).
Settings, models and logs stay unless you use --delete-data or confirm the prompt.
The key in the enclave folder is this machine's identity and carries its reputation;
only --delete-key removes the key. A new installation with the retained key is
the same provider. --yes skips prompts; --dry-run only lists.`,
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
    throw new UsageError('--keep-data and --delete-data exclude each other.');
  const found = installation();
  const dryRun = values['dry-run'] === true;
  const asks = values.yes !== true && !dryRun;
  if (asks && !process.stdin.isTTY) throw new UsageError('Prompts need a terminal: use --yes, and --keep-data or --delete-data.');

  const all = partsOf(found, dataDir);
  const data = all.filter(({ kind }) => kind === 'data');
  let deleteData = values['delete-data'] === true;
  if (asks) {
    await print(
      linesOf(
        all.filter(({ kind }) => kind === 'program' || kind === 'session'),
        'To be removed:',
      ),
    );
    if (!(await confirm('Remove the agent from this machine?'))) return EXIT.needsOwner;
    if (data.length > 0 && !deleteData && values['keep-data'] !== true) {
      await print(linesOf(data, 'Data:'));
      deleteData = await confirm('Remove the data, too?');
    }
  }
  const kinds = new Set<Part['kind']>([
    'program',
    'session',
    ...(deleteData ? (['data'] as const) : []),
    ...(values['delete-key'] === true ? (['key'] as const) : []),
  ]);
  const removed = all.filter(({ kind }) => kinds.has(kind));
  const retained = () => all.filter(({ kind, path }) => !kinds.has(kind) && existsSync(path));
  const notes: string[] = [];
  if (!dryRun) {
    const manager = await serviceManager(dataDir, undefined);
    notes.push(...(await endService(manager, labelOf(dataDir))));
    notes.push(...(await endMenuBar(dataDir)));
    const other = await runningDaemon(dataDir);
    if (other !== null) {
      process.stderr.write(
        `The provider still runs (process ${other.pid}): stop the process, then run this command again. Program and data were not removed.\n`,
      );
      return EXIT.needsOwner;
    }
    notes.push(...(await signOut(found, dataDir)));
    for (const part of removed) removePart(part);
  }
  const advice = removalAdvice(found);
  if (advice !== null) notes.push(advice);
  if (json)
    await print([
      JSON.stringify({ removed: removed.map(({ path }) => path), kept: retained().map(({ path }) => path), dry_run: dryRun, notes }),
    ]);
  else await print([...linesOf(removed, dryRun ? 'Would be removed:' : 'Removed:'), ...linesOf(retained(), 'Kept:'), ...notes]);
  return EXIT.fine;
}

function linesOf(parts: readonly Part[], title: string): string[] {
  if (parts.length === 0) return [];
  return [title, ...parts.map(({ path, what, bytes }) => `  ${path} (${what}${bytes === null ? '' : `, ${byteSizeText(bytes)}`})`)];
}
