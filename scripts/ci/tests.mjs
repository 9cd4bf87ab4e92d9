/**
 * Runs all tests for CI. If at most five test files fail, each is repeated once, alone. CI continues if all of them then pass. Files
 * that pass when repeated are appended to the list of flaky files in the first argument.
 */
import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const REPORTER = fileURLToPath(new URL('failed-files-reporter.mjs', import.meta.url));

/** Maximum failed files to repeat. More failures are not flakiness. */
const MAX_REPEATED_FILES = 5;

/**
 * Returns whether CI may continue, and the files that passed only when repeated. `runTests` takes `{ project, file }`, or null for
 * all tests, and returns `{ isOk, failedFiles }`.
 */
export function runWithOneRepeat(runTests) {
  const { isOk, failedFiles } = runTests(null);
  if (isOk) return { isOk: true, flakyFiles: [] };
  if (failedFiles.length === 0 || failedFiles.length > MAX_REPEATED_FILES) return { isOk: false, flakyFiles: [] };
  const flakyFiles = failedFiles.filter((file) => runTests(file).isOk);
  return { isOk: flakyFiles.length === failedFiles.length, flakyFiles };
}

/** Arguments of `npm test` and of `npm run test:release`, which together run all tests. */
const ALL_TESTS = [['--project=!release'], ['--project=release']];

function runVitest(failed) {
  return failed === null ? combineRuns(ALL_TESTS.map(runSelection)) : runSelection(['--project', failed.project, failed.file]);
}

/** One result for several runs. `failedFiles` is empty, so that nothing is repeated, if any run failed without naming a file. */
export function combineRuns(runs) {
  const failedRuns = runs.filter(({ isOk }) => !isOk);
  const areNamed = failedRuns.every(({ failedFiles }) => failedFiles.length > 0);
  return { isOk: failedRuns.length === 0, failedFiles: areNamed ? failedRuns.flatMap(({ failedFiles }) => failedFiles) : [] };
}

/** Runs vitest with `selection` as further arguments. `failedFiles` is empty if the report is missing. */
function runSelection(selection) {
  const directory = mkdtempSync(join(tmpdir(), 'ci-tests-'));
  const report = join(directory, 'failed-files.json');
  try {
    const env = { ...process.env, FAILED_FILES_REPORT: report };
    const { status } = spawnSync('npx', ['vitest', 'run', '--reporter=default', `--reporter=${REPORTER}`, ...selection], {
      stdio: 'inherit',
      env,
    });
    return { isOk: status === 0, failedFiles: status === 0 ? [] : failedFilesOf(report) };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Content of a report of `failed-files-reporter.mjs`. */
export function failedFilesOf(report) {
  try {
    return JSON.parse(readFileSync(report, 'utf8'));
  } catch {
    return [];
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { isOk, flakyFiles } = runWithOneRepeat(runVitest);
  const [, , flakyList] = process.argv;
  if (flakyList !== undefined) for (const { project, file } of flakyFiles) appendFileSync(flakyList, `FLAKY ${file} (${project})\n`);
  process.exit(isOk ? 0 : 1);
}
