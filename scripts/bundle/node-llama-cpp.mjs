/**
 * Bundles node-llama-cpp, whose 400 modules take most of an engine's start time when loaded one by one.
 *
 * The library finds its files relative to its modules, so that each bundled module needs its original URL.
 */
import { readFile } from 'node:fs/promises';
import { sep } from 'node:path';

const DIRECTORY = /[\\/]node_modules[\\/]node-llama-cpp[\\/]dist[\\/]/;
/** Modules for downloads and builds of llama.cpp, which engines never run (`build: 'never'`). Value: the only used export. */
const BUILD_TOOLS = new Map([
  ['simple-git', 'simpleGit'],
  ['../../utils/withProgressLog.js', 'withProgressLog'],
]);
const BUILD_TOOL = 'build-tool-of-llama-cpp';
const BINARY_TEST = /[\\/]bindings[\\/]utils[\\/]testBindingBinary\.js$/;

/** On Linux, the library first loads each of its binaries in a process of its own, so that one that crashes is not used. */
const BINARY_TEST_FUNCTION = 'export async function testBindingBinary(bindingBinaryPath, extBackendsPath, gpu,';

/** @type {import('esbuild').Plugin} */
export const nodeLlamaCpp = {
  name: 'node-llama-cpp',
  setup(build) {
    // The library's package.json does not say that unused modules may be omitted, and its entry module exports all of them.
    build.onResolve({ filter: /^(node-llama-cpp$|simple-git$|\.)/ }, async ({ path, importer, resolveDir, kind, pluginData }) => {
      if (DIRECTORY.test(importer) && BUILD_TOOLS.has(path)) return { path, namespace: BUILD_TOOL };
      if (pluginData === nodeLlamaCpp || !(path === 'node-llama-cpp' || DIRECTORY.test(importer))) return undefined;
      const { path: resolved, errors } = await build.resolve(path, { importer, resolveDir, kind, pluginData: nodeLlamaCpp });
      return errors.length > 0 ? { errors } : { path: resolved, sideEffects: false };
    });
    build.onLoad({ filter: /./, namespace: BUILD_TOOL }, ({ path }) => ({
      contents: `export const ${BUILD_TOOLS.get(path)} = () => { throw new Error(${JSON.stringify(`${path} is not in the bundle`)}); };`,
    }));
    build.onLoad({ filter: DIRECTORY }, async ({ path }) => {
      const file = path.slice(path.search(DIRECTORY)).replace(DIRECTORY, '').replaceAll(sep, '/');
      const source = (await readFile(path, 'utf8')).replace(/^\/\/# sourceMappingURL=.*$/m, '');
      const contents = BINARY_TEST.test(path) ? withoutTestOnProcessor(source) : source;
      const url = `new URL(${JSON.stringify(file)}, import.meta.resolve('node-llama-cpp')).href`;
      return { contents: contents.replaceAll('import.meta.url', url), loader: 'js' };
    });
  },
};

/**
 * Skips the test of the binary that uses the processor only: an engine is a process of its own, whose crash the agent reports. Binaries
 * for GPUs are tested, because another follows if one fails.
 */
function withoutTestOnProcessor(source) {
  if (!source.includes(BINARY_TEST_FUNCTION)) throw new Error('node-llama-cpp has changed: testBindingBinary.js');
  const renamed = source.replace(
    BINARY_TEST_FUNCTION,
    BINARY_TEST_FUNCTION.replace('export async function test', 'async function startTestOf'),
  );
  return `export const testBindingBinary = async (...args) => args[2] === false || startTestOfBindingBinary(...args);\n${renamed}`;
}
