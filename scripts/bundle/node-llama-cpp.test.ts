/** Engine processes as built: node-llama-cpp is in the bundle. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ENGINE = fileURLToPath(new URL('../../apps/provider/dist/engine/process/main.js', import.meta.url));

test('an engine loads no module of node-llama-cpp by itself, and tests only binaries for GPUs in another process', () => {
  const code = readFileSync(ENGINE, 'utf8');
  expect(code).not.toContain('from"node-llama-cpp"');
  expect(code).toMatch(/testBindingBinary ?= ?async\(\.\.\.args\) ?=> ?args\[2\] ?=== ?(?:false|!1) ?\|\| ?startTestOfBindingBinary\(/);
  expect(code).toMatch(/new URL\("bindings\/getLlama\.js", ?import\.meta\.resolve\("node-llama-cpp"\)\)/);
});
