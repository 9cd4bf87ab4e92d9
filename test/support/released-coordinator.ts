/** Builds an earlier release of the coordinator from the Git history, for upgrade tests. Uses the installed packages. */
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { type BuildOptions, build, type Plugin } from 'esbuild';
import { x } from 'tar';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SCOPE = '@inference/';
const run = promisify(execFile);

export interface CoordinatorRelease {
  readonly version: string;
  readonly commit: string;
  /** Newest migration of this release. */
  readonly schema: string;
}

/** Released coordinators, oldest first. */
export function coordinatorReleases(): readonly CoordinatorRelease[] {
  return JSON.parse(readFileSync(join(ROOT, 'scripts/release/coordinator-releases.json'), 'utf8')) as CoordinatorRelease[];
}

/** Whether the clone has the commit of a release. A shallow clone, or sources without Git, lack it. */
export async function hasCommit({ commit }: CoordinatorRelease): Promise<boolean> {
  return run('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: ROOT }).then(
    () => true,
    () => false,
  );
}

/** Path of the program of a release, built in an empty folder below `node_modules`, where packages with native code are found. */
export async function buildRelease({ commit }: CoordinatorRelease, folder: string): Promise<string> {
  mkdirSync(folder, { recursive: true });
  const archive = join(folder, 'sources.tar');
  const parts = ['apps/coordinator/src', 'apps/coordinator/package.json', 'packages', 'scripts/bundle'];
  await run('git', ['archive', '--format=tar', '--output', archive, commit, '--', ...parts], { cwd: ROOT });
  await x({ file: archive, cwd: folder });
  const app = join(folder, 'apps/coordinator');
  symlinkSync(join(ROOT, 'apps/coordinator/node_modules'), join(app, 'node_modules'));
  const { BUNDLE } = (await import(pathToFileURL(join(folder, 'scripts/bundle/options.mjs')).href)) as { BUNDLE: BuildOptions };
  const { scripts } = manifestOf(app);
  // Releases up to 0.1.0 name their programs in `build`.
  const programs = scripts.bundle ?? scripts.build ?? '';
  const entryPoints = (programs.match(/src\/[\w/.-]+\.ts/g) ?? []).map((entry) => join(app, entry));
  await build({
    ...BUNDLE,
    entryPoints,
    outbase: join(app, 'src'),
    outdir: join(app, 'dist'),
    splitting: true,
    absWorkingDir: app,
    tsconfigRaw: {},
    plugins: [sourcesOfPackages(folder)],
  });
  return join(app, 'dist/main.js');
}

interface Manifest {
  readonly scripts: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, { readonly default: string }>>;
}

function manifestOf(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
}

/** Resolves workspace packages to the release's own sources. Without the plugin, today's builds would be used. */
function sourcesOfPackages(folder: string): Plugin {
  return {
    name: 'sources-of-packages',
    setup(plugin) {
      plugin.onResolve({ filter: new RegExp(`^${SCOPE}`) }, ({ path }) => {
        const [name = '', ...rest] = path.slice(SCOPE.length).split('/');
        const root = join(folder, 'packages', name);
        const target = manifestOf(root).exports[['.', ...rest].join('/')]?.default;
        if (target === undefined) return { errors: [{ text: `${path} is not exported` }] };
        return { path: join(root, target.replace(/^\.\/dist\//, 'src/').replace(/\.js$/, '.ts')) };
      });
    },
  };
}
