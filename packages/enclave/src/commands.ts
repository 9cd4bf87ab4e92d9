/** Where the two helpers are, and how they are started. */
import { accessSync, constants } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import type { SimulatedMachine } from './simulated/machine.js';

/** By the package's own name, so that it is found from the sources (tests), the build, and a program that was bundled with this. */
const inPackage = createRequire(import.meta.url).resolve;

/** Arguments that start the simulated helper of this package. */
export function simulatedHelperCommand(options: { readonly dataDir: string; readonly profile?: SimulatedMachine }): readonly string[] {
  const program = inPackage('@inference/enclave/simulated-helper');
  const profile = options.profile === undefined ? [] : ['--profile', JSON.stringify(options.profile)];
  return [process.execPath, program, '--data-dir', resolve(options.dataDir), ...profile];
}

/** The built Swift helper, or null when this is not a Mac or it has not been built (`native/build.sh`). */
export function nativeHelperPath(): string | null {
  if (process.platform !== 'darwin') return null;
  const path = join(dirname(inPackage('@inference/enclave/package.json')), 'native/bin/inference-enclave');
  try {
    accessSync(path, constants.X_OK);
    return path;
  } catch {
    return null;
  }
}

/** Arguments that start the Swift helper, or null where {@link nativeHelperPath} is null. */
export function nativeHelperCommand(options: { readonly dataDir: string }): readonly string[] | null {
  const path = nativeHelperPath();
  return path === null ? null : [path, '--data-dir', resolve(options.dataDir)];
}

/** The script that builds the Swift helper on a Mac. */
export function nativeHelperBuild(): string {
  return join(dirname(inPackage('@inference/enclave/package.json')), 'native/build.sh');
}
