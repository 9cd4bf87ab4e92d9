/** Installs the add-on stable-diffusion.cpp (several hundred megabytes) with npm from a lock file, completely or not at all. */
import { spawn } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { DownloadError } from './transfer.js';

/** `package.json` that depends on the engine and its runtime. The lock file in the same folder has their hashes. */
const MANIFEST = createRequire(import.meta.url).resolve('#stable-diffusion-add-on');
/** Maximum characters of npm's errors in a message. */
const MAX_OUTPUT_CHARACTERS = 2000;

/** Path of the add-on in a data directory, installed or not. The folder's name contains the version. */
export function addOnPath(dataDir: string): string {
  const { version } = JSON.parse(readFileSync(MANIFEST, 'utf8')) as { version: string };
  return join(dataDir, 'add-ons', `stable-diffusion-cpp-${version}`);
}

export function isAddOnInstalled(path: string): boolean {
  return existsSync(join(path, 'node_modules'));
}

/** Installs the add-on at `path` unless installed. Throws {@link DownloadError}, or the signal's reason. */
export async function installAddOn(path: string, signal: AbortSignal): Promise<void> {
  if (isAddOnInstalled(path)) return;
  const draft = `${path}.${process.pid}`;
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { recursive: true, mode: 0o700 });
  try {
    for (const name of ['package.json', 'package-lock.json']) cpSync(join(dirname(MANIFEST), name), join(draft, name));
    await npmCi(draft, signal);
    // In place of the runtime's install script, because scripts are disabled.
    const runtime = join(draft, 'node_modules', `bare-runtime-${process.platform}-${process.arch}`, 'bin', 'bare');
    if (!existsSync(runtime)) throw new DownloadError('the engine stable-diffusion.cpp does not exist for this kind of machine');
    chmodSync(runtime, 0o755);
    if (!isAddOnInstalled(path)) renameSync(draft, path);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/** The npm bundled with this Node, else the npm on the PATH. */
function npmCommand(): [string, ...string[]] {
  const own = join(dirname(process.execPath), '..', 'lib', 'node_modules', 'npm', 'bin', 'npm-cli.js');
  return existsSync(own) ? [process.execPath, own] : ['npm'];
}

function npmCi(folder: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const [program, ...first] = npmCommand();
    const child = spawn(program, [...first, 'ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], {
      cwd: folder,
      stdio: ['ignore', 'ignore', 'pipe'],
      signal,
    });
    let output = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (output = `${output}${text}`.slice(-MAX_OUTPUT_CHARACTERS)));
    child.once('error', (error) => {
      if (signal.aborted) reject(signal.reason);
      else reject(new DownloadError(`npm, which installs the engine, cannot be run: ${error.message}`));
    });
    child.once('close', (code) => {
      if (code === 0) resolve();
      else
        reject(new DownloadError(`the engine stable-diffusion.cpp could not be installed: ${output.trim() || `npm ended with ${code}`}`));
    });
  });
}
