/** tests.mjs repeats failed test files, each once and alone, if only a few failed. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { temporaryDirectory } from '../../test/support/temporary-directory.js';

interface FailedFile {
  readonly project: string;
  readonly file: string;
}

interface Run {
  readonly isOk: boolean;
  readonly failedFiles: readonly FailedFile[];
}

const { runWithOneRepeat, combineRuns, failedFilesOf } = (await import(new URL('./tests.mjs', import.meta.url).href)) as {
  runWithOneRepeat(runTests: (file: FailedFile | null) => Run): { readonly isOk: boolean; readonly flakyFiles: readonly FailedFile[] };
  combineRuns(runs: readonly Run[]): Run;
  failedFilesOf(report: string): readonly FailedFile[];
};
const { default: Reporter } = (await import(new URL('./failed-files-reporter.mjs', import.meta.url).href)) as {
  default: new () => { onTestRunEnd(testModules: readonly object[]): void };
};

afterEach(() => {
  vi.unstubAllEnvs();
});

/** Returns prepared results in order, and records the requested files. */
function script(runs: readonly Run[]) {
  const asked: (FailedFile | null)[] = [];
  const result = runWithOneRepeat((file) => {
    asked.push(file);
    return runs[asked.length - 1] as Run;
  });
  return { ...result, asked };
}

const PASSED: Run = { isOk: true, failedFiles: [] };
const [a, b] = [
  { project: 'shared', file: 'a.test.ts' },
  { project: 'cluster', file: 'a.test.ts' },
];
const failed = (...failedFiles: FailedFile[]): Run => ({ isOk: false, failedFiles });

it('goes on where all tests pass, without a second run', () => {
  expect(script([PASSED])).toEqual({ isOk: true, flakyFiles: [], asked: [null] });
});

it('names a file that passes by itself in its project, and fails for one that does not', () => {
  expect(script([failed(b), PASSED])).toEqual({ isOk: true, flakyFiles: [b], asked: [null, b] });
  expect(script([failed(a, b), PASSED, failed(b)])).toEqual({ isOk: false, flakyFiles: [a], asked: [null, a, b] });
});

it('takes several runs as one, and repeats nothing if one of them failed without a failing file', () => {
  expect(combineRuns([PASSED, PASSED])).toEqual(PASSED);
  expect(combineRuns([failed(a), failed(b)])).toEqual(failed(a, b));
  expect(combineRuns([PASSED, failed(b)])).toEqual(failed(b));
  expect(combineRuns([failed(a), failed()])).toEqual(failed());
});

it('does not repeat a run that failed without a failing file, or with many', () => {
  expect(script([failed()])).toEqual({ isOk: false, flakyFiles: [], asked: [null] });
  const many = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => ({ project: 'shared', file: `${name}.test.ts` }));
  expect(script([failed(...many)])).toEqual({ isOk: false, flakyFiles: [], asked: [null] });
});

it('reads the failing files of a report, with their projects', () => {
  const directory = temporaryDirectory('ci-tests-test');
  const report = join(directory, 'report.json');
  vi.stubEnv('FAILED_FILES_REPORT', report);
  const ended = (state: string, name: string) => ({ state: () => state, project: { name }, relativeModuleId: 'a.test.ts' });
  new Reporter().onTestRunEnd([ended('passed', 'shared'), ended('failed', 'cluster')]);
  expect(failedFilesOf(report)).toEqual([b]);
  rmSync(directory, { recursive: true });
  expect(failedFilesOf(report)).toEqual([]);
});
