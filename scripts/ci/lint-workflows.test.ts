/** The workflows have no linter findings, and the linter detects faults. */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { program } from '../../test/support/program.js';
import { temporaryDirectory } from '../../test/support/temporary-directory.js';

const WORKFLOWS = join(import.meta.dirname, '../../.github/workflows');

async function lint(paths: readonly string[]): Promise<string[]> {
  // Bundled, because the parser imports JSON in a way that Node.js refuses.
  const { stdout } = await promisify(execFile)(process.execPath, [await program('scripts/ci/lint-workflows.ts'), ...paths]);
  return JSON.parse(stdout) as string[];
}

it('accepts every workflow of the repository', async () => {
  const files = readdirSync(WORKFLOWS);
  expect(files).toEqual(expect.arrayContaining(['ci.yml', 'release.yml']));
  expect(await lint(files.map((file) => join(WORKFLOWS, file)))).toEqual([]);
});

it('names faults', async () => {
  const folder = temporaryDirectory('workflows');
  const text = readFileSync(join(WORKFLOWS, 'release.yml'), 'utf8');
  const change = (name: string, from: string, to: string): string => {
    expect(text).toContain(from);
    const path = join(folder, `${name}.yml`);
    writeFileSync(path, text.replace(from, to));
    return path;
  };
  const found = await lint([
    change('key', 'runs-on:', 'run-on:'),
    change('expression', 'steps.version.outputs', 'stepz.version.outputs'),
    change('needs', 'needs: [build, npm]', 'needs: [build, npn]'),
    change('permission', 'attestations: write', 'attestation: write'),
    change('pin', '@e8998f949152b193b063cb0ec769d69d929409be # v2.4.0', '@v2'),
    change('version', ' # v2.4.0', ''),
    change('default', 'permissions:\n  contents: read\n', ''),
    change('input', 'run: npm ci', `run: echo $${'{{'} github.ref_name }}`),
  ]);
  for (const fault of [
    /^key\.yml .*'run-on'/,
    /^expression\.yml .*'stepz'/,
    /^needs\.yml .*'npn'/,
    /^permission\.yml .*'attestation'/,
    /^pin\.yml: actions\/attest-build-provenance@v2 is not pinned/,
    /^version\.yml: .* does not name its version/,
    /^default\.yml: .*permissions/,
    /^input\.yml: .*through env/,
  ]) {
    expect(found.filter((problem) => fault.test(problem))).not.toEqual([]);
  }
});
