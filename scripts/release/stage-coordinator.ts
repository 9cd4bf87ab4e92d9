/** `stageCoordinator`: writes the coordinator's package: bundled programs, console, and a manifest with pinned dependencies. */
import { cpSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT, readManifest, repositoryField, writeJson } from './manifest.js';
import { lockedClosure, readLock, unbundledDependencies, writeLockFile } from './shrinkwrap.js';
import { copyBundles } from './stage.js';

const WORKSPACE = 'apps/coordinator';
/** Package name in the npm registry. The workspace's name has a scope, which is not published. */
export const COORDINATOR_PACKAGE = 'inference-coordinator';

export interface StageCoordinatorOptions {
  /** Target folder; must not exist. */
  readonly folder: string;
  readonly version: string;
  readonly repository?: string | undefined;
}

/** Throws an Error if the programs or the console are not built. */
export function stageCoordinator({ folder, version, repository }: StageCoordinatorOptions): void {
  const source = join(ROOT, WORKSPACE);
  const { description, license, type, engines, bin, imports } = readManifest(source);
  const programs = Object.values(imports).filter((path) => path.startsWith('./dist/'));
  mkdirSync(folder, { recursive: true });
  copyBundles(join(source, 'dist'), join(folder, 'dist'), ['main.js', ...programs.map((path) => path.slice('./dist/'.length))]);
  cpSync(join(source, 'bin'), join(folder, 'bin'), { recursive: true });
  const console = join(ROOT, 'apps/console/dist');
  if (!existsSync(console)) throw new Error(`${console} is not there: build first (npm run build)`);
  cpSync(console, join(folder, 'console'), { recursive: true, filter: (path) => !path.endsWith('.map') });
  cpSync(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'));
  cpSync(join(ROOT, 'docs/operating.md'), join(folder, 'README.md'));
  const unbundled = unbundledDependencies(WORKSPACE);
  const about = { name: COORDINATOR_PACKAGE, version, description, license, ...repositoryField(repository), type, engines };
  writeJson(join(folder, 'package.json'), { ...about, bin, imports, dependencies: unbundled });
  writeLockFile(join(folder, 'npm-shrinkwrap.json'), {
    root: { name: COORDINATOR_PACKAGE, version, license, engines, bin, dependencies: unbundled },
    packages: lockedClosure(readLock(), WORKSPACE, Object.keys(unbundled)),
  });
}
