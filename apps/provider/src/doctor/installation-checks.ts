/** Checks of the installation: command on the PATH, newer versions, versions on trial and failed versions. */
import { accessSync, constants, realpathSync } from 'node:fs';
import { basename, delimiter, dirname, join } from 'node:path';
import type { Release } from '@inference/protocol';
import { type Installation, launcher, updateAdvice } from '../update/installation.js';
import type { UpdateChoice } from '../update/prepare-release.js';
import { UpdateError } from '../update/releases.js';
import { rolloutText } from '../update/rollout-text.js';
import { brokenVersions, readTrial } from '../update/trial.js';
import { type Finding, note, ok, problem, skipped } from './check.js';

const NAME = 'inference-provider';

export async function checkCommand(found: Installation, path: string): Promise<Finding[]> {
  if (found.kind === 'clone') return [skipped('this agent runs from a clone of its sources')];
  const first = path.split(delimiter).find((folder) => folder !== '' && isProgram(join(folder, NAME)));
  const own = launcher(found) ?? join(found.root, 'bin', `${NAME}.js`);
  if (first === undefined) {
    const line = `export PATH="${commandFolder(found)}:$PATH"`;
    return [note('the command is not on your PATH', `Add this line to the startup file of your shell: ${line}`)];
  }
  const there = realpathSync(join(first, NAME));
  if (there === realpathSync(own)) return [ok(`the command is on your PATH: ${join(first, NAME)}`)];
  return [problem(`another installation comes first on your PATH: ${there}`, `Remove one of the two; this one is ${own}`)];
}

function commandFolder(found: Installation): string {
  if (found.kind === 'own') return '~/.local/bin';
  const stable = launcher(found);
  if (stable !== null) return dirname(stable);
  // npm's folders(5): a global installation has its programs in PREFIX/bin, and its packages in PREFIX/lib/node_modules.
  const modules = dirname(found.root);
  return basename(dirname(modules)) === 'lib' ? join(modules, '../../bin') : join(modules, '.bin');
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

interface UpdateView {
  readonly found: Installation;
  readonly automatic: boolean;
  /** Null if there is no source of updates. */
  readonly findUpdate: (() => Promise<UpdateChoice>) | null;
}

export async function checkUpdates({ found, automatic, findUpdate }: UpdateView): Promise<Finding[]> {
  const findings: Finding[] = [];
  if (found.kind === 'own') {
    const trial = readTrial(found.prefix);
    if (trial !== null) {
      findings.push(
        note(`version ${trial.version} has not proved itself yet; if it fails, ${trial.previous} is restored`, 'Wait a few minutes.'),
      );
    }
    for (const { version, reason } of brokenVersions(found.prefix)) {
      findings.push(
        note(
          `version ${version} failed on this machine: ${reason}`,
          `Wait for the next version, or try again: inference-provider update --to ${version}`,
        ),
      );
    }
  }
  if (findUpdate === null) return findings.length > 0 ? findings : [skipped('the source of newer versions is unknown')];
  try {
    const choice = await findUpdate();
    if (choice.kind === 'update') findings.push(offeredReleaseFinding(found, choice.release, automatic));
    else if (choice.kind === 'current' && choice.later !== null) findings.push(ok(rolloutText(choice.later)));
    else if (findings.length === 0)
      findings.push(ok(`version ${found.version} is up to date${automatic ? '' : '; automatic updates are off'}`));
  } catch (error) {
    if (!(error instanceof UpdateError)) throw error;
    findings.push(skipped(error.message));
  }
  return findings;
}

function offeredReleaseFinding(found: Installation, { version }: Release, automatic: boolean): Finding {
  const text = `version ${version} is available`;
  const advice = updateAdvice(found);
  if (advice !== null) return note(text, advice);
  return note(
    text,
    automatic
      ? 'Installed automatically. To update now, run: inference-provider update'
      : 'Automatic updates are off. Run: inference-provider update',
  );
}
