/**
 * npm install step: deletes files of installed packages that this repository never loads, 560 of 1,250 MB:
 *
 * - native libraries of other systems, and sources and object files of libraries that are installed
 * - source maps and TypeScript sources, which only debuggers read
 * - token tables of js-tiktoken: only @langchain/core loads the package, without the tables
 *
 * `npm ci` restores deleted files.
 */
import { existsSync, readdirSync, readFileSync, rmSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pruneEngines } from '../apps/provider/install/prune-engines.mjs';

/** Repository to prune; default: this one. */
const root = process.argv[2] ?? fileURLToPath(new URL('..', import.meta.url));
const modules = join(root, 'node_modules');
const system = `${process.platform}-${process.arch}`;

try {
  prune();
} catch (error) {
  // Not fatal: unused files only take space.
  console.error(`Unused files of packages were not deleted: ${error.message}`);
}

function prune() {
  pruneEngines(modules, process.platform, process.arch);

  for (const parser of ['tree-sitter', 'tree-sitter-swift']) {
    const prebuilds = join(modules, parser, 'prebuilds');
    const folders = foldersOf(prebuilds);
    // Without a prebuilt library for this system, npm compiles the sources, so they are retained.
    if (!folders.includes(system)) continue;
    drop(
      prebuilds,
      folders.filter((folder) => folder !== system),
    );
    drop(join(modules, parser, 'src'), ['parser.c', 'parser_abi13.c', 'parser_abi14.c']);
  }

  const sqlite = join(modules, 'better-sqlite3/build/Release');
  if (existsSync(join(sqlite, 'better_sqlite3.node'))) drop(sqlite, ['obj', 'obj.target']);

  drop(join(modules, 'js-tiktoken/dist'), ['index.js', 'index.cjs', 'ranks']);

  for (const parent of ['', 'apps', 'packages']) {
    for (const workspace of parent === '' ? ['', 'test'] : foldersOf(join(root, parent))) {
      dropSources(join(root, parent, workspace, 'node_modules'));
    }
  }
}

function drop(folder, names) {
  for (const name of names) rmSync(join(folder, name), { recursive: true, force: true });
}

function entriesOf(path) {
  try {
    return readdirSync(path, { withFileTypes: true });
  } catch (error) {
    // Not installed, for example with --omit=dev.
    if (error.code === 'ENOENT') return [];
    throw error;
  }
}

/** Names of folders in a folder, without symbolic links, such as those to workspaces. */
function foldersOf(path) {
  return entriesOf(path)
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
}

/** Deletes source maps, and TypeScript sources that no manifest names as an entry point. */
function dropSources(nodeModules) {
  const names = foldersOf(nodeModules).filter((name) => !name.startsWith('.'));
  const packages = names.flatMap((name) =>
    name.startsWith('@') ? foldersOf(join(nodeModules, name)).map((part) => join(name, part)) : [name],
  );
  for (const name of packages) {
    const folder = join(nodeModules, name);
    dropFiles(folder, entryPoints(folder).some(isTypeScriptSource) ? isSourceMap : (file) => isSourceMap(file) || isTypeScriptSource(file));
  }
}

function dropFiles(folder, isUnused) {
  for (const entry of entriesOf(folder)) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      if (entry.name === 'node_modules') dropSources(path);
      else dropFiles(path, isUnused);
    } else if (entry.isFile() && isUnused(entry.name)) unlinkSync(path);
  }
}

function isSourceMap(file) {
  return /\.[cm]?[jt]s\.map$/.test(file);
}

function isTypeScriptSource(file) {
  return /\.[cm]?tsx?$/.test(file) && !/\.d\.([\w-]+\.)?[cm]?ts$/.test(file);
}

/** Entry points in a manifest, without entries for package-specific export conditions such as `@zod/source`. */
function entryPoints(folder) {
  const path = join(folder, 'package.json');
  if (!existsSync(path)) return [];
  const { main, module, types, typings, exports } = JSON.parse(readFileSync(path, 'utf8').replace(/^\uFEFF/, ''));
  return stringsIn([main, module, types, typings, exports]);
}

function stringsIn(value) {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) => (key.startsWith('@') ? [] : stringsIn(member)));
}
