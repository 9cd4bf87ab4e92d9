/**
 * Deletes native libraries of other systems and unused sources (350 MB) from the installed engines. Runs as an install step of the
 * package, for the archives of a release, and after `npm ci` in the repository. Libraries of the given system are never touched.
 */
import { readdirSync, realpathSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * @param {string} modules A `node_modules` folder. Packages that are not installed there are skipped.
 * @param {string} os As in `process.platform`.
 * @param {string} cpu As in `process.arch`.
 */
export function pruneEngines(modules, os, cpu) {
  const drop = (/** @type {string} */ path) => rmSync(join(modules, path), { recursive: true, force: true });
  const onnxruntime = 'onnxruntime-node/bin';
  for (const api of foldersOf(join(modules, onnxruntime))) {
    for (const system of foldersOf(join(modules, onnxruntime, api))) {
      for (const kind of foldersOf(join(modules, onnxruntime, api, system))) {
        if (system !== os || kind !== cpu) drop(`${onnxruntime}/${api}/${system}/${kind}`);
      }
    }
  }
  // For x64, npm also installs Arm libraries, which are meant for cross-builds.
  if (cpu !== 'arm64') drop('@node-llama-cpp/linux-arm64/bins');
  // Git bundle of llama.cpp's sources. The agent loads prebuilt libraries only.
  drop('node-llama-cpp/llama/gitRelease.bundle');
}

/** @param {string} path */
function foldersOf(path) {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'ENOENT') return [];
    throw error;
  }
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  try {
    pruneEngines(fileURLToPath(new URL('../node_modules', import.meta.url)), process.platform, process.arch);
  } catch (error) {
    // Unused libraries only take space.
    console.error(`Unused libraries were not deleted: ${/** @type {Error} */ (error).message}`);
  }
}
