/** Only a failing test file runs again, by itself. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';

interface Run {
  readonly isOk: boolean;
  readonly failedFiles: readonly string[];
}

const { runWithOneRepeat, failedFilesOf } = (await import(new URL('./tests.mjs', import.meta.url).href)) as {
  runWithOneRepeat(runTests: (files: readonly string[]) => Run): { readonly isOk: boolean; readonly flakyFiles: readonly string[] };
  failedFilesOf(report: string): readonly string[];
};

/** Returns prepared results in order, and records the requested files. */
function script(runs: readonly Run[]) {
  const asked: (readonly string[])[] = [];
  const result = runWithOneRepeat((files) => {
    asked.push(files);
    return runs[asked.length - 1] as Run;
  });
  return { ...result, asked };
}

const PASSED: Run = { isOk: true, failedFiles: [] };
const failed = (...failedFiles: string[]): Run => ({ isOk: false, failedFiles });

it('goes on where all tests pass, without a second run', () => {
  expect(script([PASSED])).toEqual({ isOk: true, flakyFiles: [], asked: [[]] });
});

it('names a file that passes by itself, and fails for one that does not', () => {
  expect(script([failed('a.test.ts'), PASSED])).toEqual({ isOk: true, flakyFiles: ['a.test.ts'], asked: [[], ['a.test.ts']] });
  expect(script([failed('a.test.ts', 'b.test.ts'), PASSED, failed('b.test.ts')])).toEqual({
    isOk: false,
    flakyFiles: ['a.test.ts'],
    asked: [[], ['a.test.ts'], ['b.test.ts']],
  });
});

it('does not repeat a run that failed without a failing file, or with many', () => {
  expect(script([failed()])).toEqual({ isOk: false, flakyFiles: [], asked: [[]] });
  const many = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => `${name}.test.ts`);
  expect(script([failed(...many)])).toEqual({ isOk: false, flakyFiles: [], asked: [[]] });
});

it('reads the failing files of a report', () => {
  const directory = mkdtempSync(join(tmpdir(), 'ci-tests-test-'));
  const report = join(directory, 'report.json');
  const testResults = [
    { name: resolve('a/one.test.ts'), status: 'failed' },
    { name: resolve('a/two.test.ts'), status: 'passed' },
  ];
  writeFileSync(report, JSON.stringify({ testResults }));
  expect(failedFilesOf(report)).toEqual(['a/one.test.ts']);
  rmSync(directory, { recursive: true });
  expect(failedFilesOf(report)).toEqual([]);
});
