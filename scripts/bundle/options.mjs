/** How a program is bundled for Node, wherever that is done: one ES module that runs where the workspace's packages are. */

/** Packages that hold native code, or that find files of their own beside them. */
const EXTERNAL = [
  'better-sqlite3',
  'node-llama-cpp',
  'onnxruntime-node',
  'pg-native',
  'sharp',
  // Loaded only by those who want traces; everyone would read it all otherwise.
  '@opentelemetry/sdk-trace-base',
  '@opentelemetry/resources',
  '@opentelemetry/exporter-trace-otlp-http',
  '@opentelemetry/exporter-trace-otlp-proto',
];

/** What CommonJS packages call for Node's own modules; an ES module has no `require`. */
const REQUIRE =
  "import { createRequire as createRequireOfBundle } from 'node:module';const require = createRequireOfBundle(import.meta.url);";

/** @type {import('esbuild').BuildOptions} */
export const BUNDLE = {
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  external: EXTERNAL,
  banner: { js: REQUIRE },
  // Half the text is parsed in half the time. Names are retained, and lines are short enough to locate errors.
  minifyWhitespace: true,
  minifySyntax: true,
  lineLimit: 160,
  logLevel: 'warning',
};
