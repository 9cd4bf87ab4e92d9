/**
 * Bundles node-llama-cpp, whose 400 modules take most of an engine's start time when loaded one by one.
 *
 * Its modules find libraries and versions relative to themselves, so each bundled module gets its original URL.
 */
import { readFile } from 'node:fs/promises';
import { sep } from 'node:path';

const DIRECTORY = /[\\/]node_modules[\\/]node-llama-cpp[\\/]dist[\\/]/;
const BINARY_TEST = /[\\/]bindings[\\/]utils[\\/]testBindingBinary\.js$/;

/** On Linux, the library first loads llama.cpp in another process. An engine is a process of its own, whose crash is reported. */
const NO_BINARY_TEST = 'export const testBindingBinary = async () => true;';

/** @type {import('esbuild').Plugin} */
export const nodeLlamaCpp = {
  name: 'node-llama-cpp',
  setup(build) {
    // Its entry module exports everything, and package.json does not say that unused modules may be omitted.
    build.onResolve({ filter: /^(node-llama-cpp$|\.)/ }, async ({ path, importer, resolveDir, kind, pluginData }) => {
      if (pluginData === nodeLlamaCpp || !(path === 'node-llama-cpp' || DIRECTORY.test(importer))) return undefined;
      const { path: resolved, errors } = await build.resolve(path, { importer, resolveDir, kind, pluginData: nodeLlamaCpp });
      return errors.length > 0 ? { errors } : { path: resolved, sideEffects: false };
    });
    build.onLoad({ filter: DIRECTORY }, async ({ path }) => {
      if (BINARY_TEST.test(path)) return { contents: NO_BINARY_TEST, loader: 'js' };
      const file = path.slice(path.search(DIRECTORY)).replace(DIRECTORY, '').replaceAll(sep, '/');
      const contents = (await readFile(path, 'utf8')).replace(/^\/\/# sourceMappingURL=.*$/m, '');
      const url = `new URL(${JSON.stringify(file)}, import.meta.resolve('node-llama-cpp')).href`;
      return { contents: contents.replaceAll('import.meta.url', url), loader: 'js' };
    });
  },
};
