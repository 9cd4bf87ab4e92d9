/**
 * Programs in TypeScript that tests start as processes. Each is bundled once into one plain file: a compiler and hundreds of
 * modules in every start would cost more than what most of these programs do.
 */
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';
import { BUNDLE } from '../../scripts/bundle/options.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const built = new Map<string, string>();

/** Path of the bundle of a TypeScript program, which is named by its path in the repository. Throws when it does not compile. */
export function program(source: string): string {
  const known = built.get(source);
  if (known !== undefined) return known;
  // Beside its source, so that it finds what its source finds.
  const path = join(ROOT, source.replace(/\.ts$/, '.bundle.js'));
  // Written beside and renamed: another process may bundle or start the same program now.
  const fresh = `${path}.${process.pid}`;
  buildSync({ ...BUNDLE, entryPoints: [join(ROOT, source)], outfile: fresh, sourcemap: 'inline' });
  renameSync(fresh, path);
  built.set(source, path);
  return path;
}
