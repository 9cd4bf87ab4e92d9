/** Source files of the workspace's packages, by the specifiers under which other packages import them. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const PACKAGES = fileURLToPath(new URL('../../packages/', import.meta.url));
/** `exports` by name of the package's folder; null: no such folder. A build asks for the same packages hundreds of times. */
const exportsByPackage = new Map();

function exportsOf(name) {
  let exports = exportsByPackage.get(name);
  if (exports === undefined) {
    const manifest = join(PACKAGES, name, 'package.json');
    exports = existsSync(manifest) ? JSON.parse(readFileSync(manifest, 'utf8')).exports : null;
    exportsByPackage.set(name, exports);
  }
  return exports;
}

/**
 * `@inference/protocol/crypto` is `…/packages/protocol/src/crypto/index.ts`. Null for specifiers outside `packages`, and
 * for exports that do not point to compiled sources.
 *
 * @param {string} specifier
 * @param {readonly string[]} conditions of package.json's `exports`, apart from `default`
 * @returns {string | null}
 */
export function sourceOf(specifier, conditions = ['node']) {
  const [, name, entry] = /^@inference\/([^/]+)(\/.+)?$/.exec(specifier) ?? [];
  const exports = name === undefined ? null : exportsOf(name);
  if (exports === null) return null;
  let target = exports[`.${entry ?? ''}`];
  while (typeof target === 'object') target = target[conditions.find((condition) => condition in target) ?? 'default'];
  const [, file] = /^\.\/dist\/(.+)\.js$/.exec(target ?? '') ?? [];
  return file === undefined ? null : join(PACKAGES, name, 'src', `${file}.ts`);
}
