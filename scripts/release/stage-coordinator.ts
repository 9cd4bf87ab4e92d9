/** Stages the coordinator's package: bundled programs, the console, and a manifest that pins unbundled dependencies. */
import { cpSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { BUNDLE } from '../bundle/options.mjs';
import { type Lock, lockedClosure } from './shrinkwrap.js';
import { copyBundles, ROOT, readManifest, repositoryField, writeJson } from './stage.js';

const WORKSPACE = 'apps/coordinator';
/** Name in the registry; the workspace has a scope of its own. */
export const COORDINATOR_PACKAGE = 'inference-coordinator';

export interface StageCoordinatorOptions {
  /** Target folder; must not exist. */
  readonly folder: string;
  readonly version: string;
  /** Web address of the repository. */
  readonly repository?: string | undefined;
}

/** Throws an Error if the programs or the console are not built. */
export function stageCoordinator({ folder, version, repository }: StageCoordinatorOptions): void {
  const source = join(ROOT, WORKSPACE);
  const { description, license, type, engines, bin, imports, dependencies } = readManifest(source);
  const programs = Object.values(imports).filter((path) => path.startsWith('./dist/'));
  mkdirSync(folder, { recursive: true });
  copyBundles(join(source, 'dist'), join(folder, 'dist'), ['main.js', ...programs.map((path) => path.slice('./dist/'.length))]);
  cpSync(join(source, 'bin'), join(folder, 'bin'), { recursive: true });
  const console = join(ROOT, 'apps/console/dist');
  if (!existsSync(console)) throw new Error(`${console} is not there: build first (npm run build)`);
  cpSync(console, join(folder, 'console'), { recursive: true, filter: (path) => !path.endsWith('.map') });
  cpSync(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'));
  cpSync(join(ROOT, 'docs/operating.md'), join(folder, 'README.md'));
  const outside = Object.fromEntries(Object.entries(dependencies).filter(([name]) => BUNDLE.external?.includes(name) === true));
  const about = { name: COORDINATOR_PACKAGE, version, description, license, ...repositoryField(repository), type, engines };
  const manifest = { ...about, bin, imports, dependencies: outside };
  writeJson(join(folder, 'package.json'), manifest);
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as Lock;
  writeJson(join(folder, 'npm-shrinkwrap.json'), {
    name: COORDINATOR_PACKAGE,
    version,
    lockfileVersion: 3,
    requires: true,
    packages: {
      '': { name: COORDINATOR_PACKAGE, version, license, engines, bin, dependencies: outside },
      ...lockedClosure(lock, WORKSPACE, Object.keys(outside)),
    },
  });
}
