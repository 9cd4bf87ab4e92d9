/** Source files of the workspace's packages, by the specifiers under which other packages import them. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const PACKAGES = fileURLToPath(new URL('../../packages/', import.meta.url));

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
  if (name === undefined || !existsSync(join(PACKAGES, name))) return null;
  const { exports } = JSON.parse(readFileSync(join(PACKAGES, name, 'package.json'), 'utf8'));
  let target = exports[`.${entry ?? ''}`];
  while (typeof target === 'object') target = target[conditions.find((condition) => condition in target) ?? 'default'];
  const [, file] = /^\.\/dist\/(.+)\.js$/.exec(target ?? '') ?? [];
  return file === undefined ? null : join(PACKAGES, name, 'src', `${file}.ts`);
}
