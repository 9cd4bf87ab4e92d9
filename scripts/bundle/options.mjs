/** esbuild options of every bundled program: ES modules for Node, which load the unbundled packages from `node_modules`. */
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { nodeLlamaCpp } from './node-llama-cpp.mjs';
import { sourceOf } from './workspace-sources.mjs';

/** Unbundled packages: they contain native code, or read files of their own package. */
const EXTERNAL = [
  'better-sqlite3',
  'koffi',
  // Libraries of node-llama-cpp, one package per platform.
  '@node-llama-cpp/*',
  // Native code of node-llama-cpp's downloader, which no program contains.
  '@reflink/reflink',
  'onnxruntime-node',
  'pg-native',
  'sharp',
  // Loaded on demand, because few coordinators export traces.
  '@opentelemetry/sdk-trace-base',
  '@opentelemetry/resources',
  '@opentelemetry/exporter-trace-otlp-http',
  '@opentelemetry/exporter-trace-otlp-proto',
];

/** Packages that programs need beside their bundle. node-llama-cpp finds its libraries by the location of its own files. */
export const INSTALLED = [...EXTERNAL, 'node-llama-cpp'];

/** Defines `require`, which bundled CommonJS packages call and ES modules lack. */
const REQUIRE =
  "import { createRequire as createRequireOfBundle } from 'node:module';const require = createRequireOfBundle(import.meta.url);";

/**
 * Omits the parsers of `plist`, with their XML library, from programs that only write property lists. Loading them takes 7 % of a
 * program's start time.
 *
 * @type {import('esbuild').Plugin}
 */
const omitUnusedParsers = {
  name: 'omit-unused-parsers',
  setup(build) {
    build.onResolve({ filter: /^\.\/parse[\w-]*\.js$/ }, ({ importer, path }) =>
      /node_modules[\\/]plist[\\/]/.test(importer) ? { path: join(dirname(importer), path), sideEffects: false } : undefined,
    );
  },
};

const STRING_WIDTH = /[\\/]node_modules[\\/]string-width[\\/]index\.js$/;
/** Constants of `string-width`, as lazy objects with the only method that the package calls. */
const LAZY_CONSTANTS = [
  [
    'const segmenter = new Intl.Segmenter();',
    'const segmenter = { segment: (text) => (segmenter.value ??= new Intl.Segmenter()).segment(text) };',
  ],
  [
    'const rgiEmojiRegex = /^\\p{RGI_Emoji}$/v;',
    "const rgiEmojiRegex = { test: (text) => (rgiEmojiRegex.value ??= new RegExp('^\\\\p{RGI_Emoji}$', 'v')).test(text) };",
  ],
];

/**
 * Creates the tables of `string-width` at the first text that is not ASCII, because they take a sixth of a command's time.
 *
 * @type {import('esbuild').Plugin}
 */
const deferStringWidth = {
  name: 'defer-string-width',
  setup(build) {
    build.onLoad({ filter: STRING_WIDTH }, async ({ path }) => {
      let contents = await readFile(path, 'utf8');
      for (const [eager, lazy] of LAZY_CONSTANTS) contents = contents.replace(eager, () => lazy);
      return { contents };
    });
  },
};

/**
 * Ignores the source maps of packages, so that equal sources give equal bundles. Chunk names contain a hash of the maps, which
 * some installations lack (prune-packages.mjs).
 *
 * @type {import('esbuild').Plugin}
 */
const ignoreSourceMaps = {
  name: 'ignore-source-maps',
  setup(build) {
    build.onLoad({ filter: /[\\/]node_modules[\\/].*\.[cm]?js$/ }, async ({ path }) => ({
      contents: (await readFile(path, 'utf8')).replace(/^\/\/[#@] sourceMappingURL=.*$/gm, ''),
      loader: 'default',
    }));
  },
};

/**
 * Bundles the workspace's packages from their sources, so that programs can be bundled before the compiler has run.
 *
 * @type {import('esbuild').Plugin}
 */
const workspaceSources = {
  name: 'workspace-sources',
  setup(build) {
    build.onResolve({ filter: /^@inference\// }, ({ path }) => {
      const source = sourceOf(path);
      return source === null ? undefined : { path: source };
    });
  },
};

/** @type {import('esbuild').BuildOptions} */
export const BUNDLE = {
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  external: EXTERNAL,
  plugins: [nodeLlamaCpp, workspaceSources, omitUnusedParsers, deferStringWidth, ignoreSourceMaps],
  banner: { js: REQUIRE },
  // Smaller files load faster. Identifiers are not minified, and lines are split, so that stack traces are readable.
  minifyWhitespace: true,
  minifySyntax: true,
  lineLimit: 160,
  logLevel: 'warning',
};
