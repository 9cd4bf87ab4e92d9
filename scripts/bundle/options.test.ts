/** Programs as built: what would make their start slow. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const DIST = fileURLToPath(new URL('../../apps/provider/dist/', import.meta.url));
const codeOf = (file: string): string => readFileSync(`${DIST}${file}`, 'utf8');

test('the agent creates tables of Unicode at first use', () => {
  const chunks = readdirSync(`${DIST}chunks`).filter((file) => file.endsWith('.js'));
  const code = chunks.map((file) => codeOf(`chunks/${file}`)).join('\n');
  expect(code).toMatch(/\?\?=\s*new Intl\.Segmenter/);
  expect(code).not.toMatch(/[^?]=\s*new Intl\.Segmenter/);
  expect(code).not.toContain('/^\\p{RGI_Emoji}$/v');
});

test('an engine has no code for builds of llama.cpp', () => {
  const code = codeOf('engine/process/main.js');
  expect(code).toContain('simple-git is not in the bundle');
  expect(code).not.toMatch(/Intl\.Segmenter|ora-[a-z]|cli-spinners/);
});
