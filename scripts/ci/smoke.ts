/** `npm run smoke`: runs every soak test and bench at a small size, two at a time. Fails if one fails twice. */
import { spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** File to which runs are appended that passed only on the second try. */
const [, , FLAKY_LIST] = process.argv;
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Time limit of a run, far above the duration on a busy machine. */
const LIMIT_MS = 6 * 60_000;

interface Run {
  readonly name: string;
  readonly args: readonly string[];
  /** Expected output. Detects a program that exits without having done anything. */
  readonly prints: RegExp;
}

const soak = (prints: RegExp, ...args: readonly string[]): Run => ({
  name: `soak ${args.join(' ')}`,
  args: ['scripts/soak/run.ts', ...args],
  prints,
});
const bench = (name: string): Run => ({ name: `bench ${name}`, args: ['scripts/bench/run.ts', '--smoke', name], prints: /\d/ });

const LANES: readonly (readonly Run[])[] = [
  [
    soak(/ordinary: [1-9]/, 'chaos', '0.15'),
    soak(/30 of 30/, 'crowd', '30', '1'),
    soak(/answers: [1-9]\d* verified/, 'agent', '0.4'),
    soak(/[1-9]\d* receipts found in usage entries/, 'cluster', '0.4'),
    soak(/kills, cancels and refusals: \{ verified: [1-9]/, 'e2e', '16'),
  ],
  [
    'relay',
    'e2e',
    'engine',
    'drafts',
    'conversations',
    'long-context',
    'ledger',
    'leases',
    'statistics',
    'attestation',
    'rendering',
    'scheduler',
    'images',
    'vision',
    'cluster',
  ].map(bench),
];

const failed = (await Promise.all(LANES.map(runAll))).flat();
for (const name of failed) console.error(`FAILED: ${name}`);
process.exit(failed.length === 0 ? 0 : 1);

async function runAll(runs: readonly Run[]): Promise<string[]> {
  const failures: string[] = [];
  for (const run of runs) {
    if (await printsExpected(run)) continue;
    // A failed run is repeated once, like a failed test file in CI.
    console.log(`\n== ${run.name}: once more`);
    if (!(await printsExpected(run))) failures.push(run.name);
    else if (FLAKY_LIST !== undefined) appendFileSync(FLAKY_LIST, `FLAKY ${run.name}\n`);
  }
  return failures;
}

async function printsExpected({ name, args, prints }: Run): Promise<boolean> {
  const begun = performance.now();
  const child = spawn(process.execPath, ['--import', 'tsx', ...args], { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
  let printed = '';
  for (const output of [child.stdout, child.stderr]) output.setEncoding('utf8').on('data', (text: string) => (printed += text));
  const limit = setTimeout(() => {
    printed += `\nended after ${LIMIT_MS / 1000} s\n`;
    child.kill('SIGKILL');
  }, LIMIT_MS);
  const how = await new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('close', (code, signal) => resolve(signal ?? `exit code ${code}`));
  });
  clearTimeout(limit);
  const isFine = how === 'exit code 0' && prints.test(printed);
  console.log(`\n== ${name}: ${isFine ? 'fine' : how} after ${((performance.now() - begun) / 1000).toFixed(0)} s\n${printed.trim()}`);
  return isFine;
}
