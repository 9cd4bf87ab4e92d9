/** Paths and command lines of the two helpers. */
import { accessSync, constants } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import type { SimulatedMachine } from './simulated/machine.js';

/** Resolved by the package name, so that sources (tests), build and bundles find the same files. */
const inPackage = createRequire(import.meta.url).resolve;

/** Command line of the simulated helper. */
export function simulatedHelperCommand(options: { readonly dataDir: string; readonly profile?: SimulatedMachine }): readonly string[] {
  const program = inPackage('@inference/enclave/simulated-helper');
  const profile = options.profile === undefined ? [] : ['--profile', JSON.stringify(options.profile)];
  return [process.execPath, program, '--data-dir', resolve(options.dataDir), ...profile];
}

/** Path of the built Swift helper; null on other systems, or before `native/build.sh`. */
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

/** Command line of the Swift helper; null where {@link nativeHelperPath} is null. */
export function nativeHelperCommand(options: { readonly dataDir: string }): readonly string[] | null {
  const path = nativeHelperPath();
  return path === null ? null : [path, '--data-dir', resolve(options.dataDir)];
}

/** Script that builds the Swift helper on a Mac. */
export function nativeHelperBuild(): string {
  return join(dirname(inPackage('@inference/enclave/package.json')), 'native/build.sh');
}
