/** Texts for users make the permitted promises about privacy, and no others. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { END_TO_END_PROMISE, OBSERVERS } from '../apps/console/src/features/modes/mode-texts.js';

const ROOT = join(import.meta.dirname, '..');

/**
 * Promises that neither mode keeps: the owner of a machine can read requests with a changed program, the coordinator knows the
 * account, and a sealing key opens the recorded traffic of its hour.
 */
const FALSE_PROMISES: readonly RegExp[] = [
  /\b(?:nobody|no ?one)(?: else)? (?:can|could|is able to) (?:ever )?read\b/i,
  /\bprivate by hardware\b/i,
  /\btrusted code\b/i,
  /\b(?:are|is|be|stay|stays|remain|remains|fully|completely) anonymous\b|\banonymous (?:requests?|access|use|inference|prompts?)\b|\banonym(?:ously|ity)\b/i,
  /\b(?:perfect )?forward[- ]secre(?:t|cy)\b/i,
];

/** Documents, and all sources of programs: texts of the console, CLI help, API descriptions and errors. */
const texts = execFileSync(
  'git',
  [
    'ls-files',
    '*.md',
    '*.html',
    'apps/*/src/*',
    'packages/*/src/*',
    'packages/enclave/native/*',
    'apps/provider/menu-bar/*',
    'scripts/*.sh',
  ],
  { cwd: ROOT, encoding: 'utf8' },
)
  .trim()
  .split('\n');

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

/** False promises in a text, whatever its line breaks. */
function falsePromisesIn(text: string): string[] {
  const line = text.replaceAll(/\s+/g, ' ');
  return FALSE_PROMISES.flatMap((promise) => line.match(promise)?.[0] ?? []);
}

describe('texts for users', () => {
  it.each([
    'Nobody else can\n read your prompts.',
    'No one could read it.',
    'Private by hardware.',
    'The Mac runs trusted code.',
    'Requests are anonymous.',
    'Anonymous inference on Macs.',
    'Sealing has perfect forward secrecy.',
    'Keys are forward-secret.',
  ])('would fail with %j', (text) => {
    expect(falsePromisesIn(text)).toHaveLength(1);
  });

  it('make no false promise', () => {
    for (const path of ['README.md', 'docs/clients.md', 'apps/console/index.html', 'packages/verifier/src/cli/main.ts']) {
      expect(texts).toContain(path);
    }
    expect(texts.length).toBeGreaterThan(500);
    expect(texts.flatMap((path) => falsePromisesIn(read(path)).map((promise) => `${path}: ${promise}`))).toEqual([]);
  });
});

describe('the console and the security model', () => {
  const page = read('docs/security-model.md').replaceAll(/\s+/g, ' ');

  it('give the same promise', () => {
    expect(page).toContain(END_TO_END_PROMISE);
  });

  it.each(OBSERVERS)('agree on what is seen by: $who', ({ who, plain, endToEnd }) => {
    const cells = [who, plain, endToEnd].map((cell) => cell.charAt(0).toLowerCase() + cell.slice(1));
    expect(page).toContain(`| ${cells.join(' | ')} |`);
  });

  it('list the same observers', () => {
    const [, table = ''] = /## Who sees what\n(.*?)\n## /s.exec(read('docs/security-model.md')) ?? [];
    expect(table.split('\n').filter((line) => line.startsWith('| '))).toHaveLength(OBSERVERS.length + 1);
  });
});
