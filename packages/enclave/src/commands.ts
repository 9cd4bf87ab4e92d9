/** Where the two helpers are, and how they are started. */
import { accessSync, constants } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { SimulatedMachine } from './simulated/machine.js';

/** Arguments that start the simulated helper of this package. */
export function simulatedHelperCommand(options: { readonly dataDir: string; readonly profile?: SimulatedMachine }): readonly string[] {
  const program = fileURLToPath(new URL('../dist/simulated/main.js', import.meta.url));
  const profile = options.profile === undefined ? [] : ['--profile', JSON.stringify(options.profile)];
  return [process.execPath, program, '--data-dir', resolve(options.dataDir), ...profile];
}

/** The built Swift helper, or null when this is not a Mac or it has not been built (`native/build.sh`). */
export function nativeHelperPath(): string | null {
  if (process.platform !== 'darwin') return null;
  const path = fileURLToPath(new URL('../native/bin/inference-enclave', import.meta.url));
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
