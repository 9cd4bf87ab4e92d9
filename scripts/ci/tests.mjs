/**
 * Runs every test as CI does: a test file that fails is run once more by itself. Passing then, the file is appended to the list that
 * the first argument names, and CI goes on. A run that fails without a failing file is never repeated.
 */
import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';

/** More failing files than this are a fault, not chance. */
const MAX_REPEATED_FILES = 5;

/**
 * `runTests` takes the files to run, all of them if the list is empty, and returns `{ isOk, failedFiles }`.
 * Returns whether CI may go on, and the files that passed only by themselves.
 */
export function runWithOneRepeat(runTests) {
  const { isOk, failedFiles } = runTests([]);
  if (isOk) return { isOk: true, flakyFiles: [] };
  if (failedFiles.length === 0 || failedFiles.length > MAX_REPEATED_FILES) return { isOk: false, flakyFiles: [] };
  const flakyFiles = failedFiles.filter((file) => runTests([file]).isOk);
  return { isOk: flakyFiles.length === failedFiles.length, flakyFiles };
}

/** One run of vitest. `failedFiles` are relative to the current directory; empty if the report is missing. */
function runVitest(files) {
  const directory = mkdtempSync(join(tmpdir(), 'ci-tests-'));
  const report = join(directory, 'report.json');
  try {
    const options = ['run', '--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
    const { status } = spawnSync('npx', ['vitest', ...options, ...files], { stdio: 'inherit' });
    return { isOk: status === 0, failedFiles: status === 0 ? [] : failedFilesOf(report) };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Test files that vitest's JSON report says failed. */
export function failedFilesOf(report) {
  try {
    const { testResults } = JSON.parse(readFileSync(report, 'utf8'));
    return testResults.filter(({ status }) => status === 'failed').map(({ name }) => relative(process.cwd(), name));
  } catch {
    return [];
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { isOk, flakyFiles } = runWithOneRepeat(runVitest);
  const [, , flakyList] = process.argv;
  if (flakyList !== undefined) for (const file of flakyFiles) appendFileSync(flakyList, `FLAKY ${file}\n`);
  process.exit(isOk ? 0 : 1);
}
