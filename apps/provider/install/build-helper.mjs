/**
 * Install step of the package: builds the Secure Enclave helper on a Mac with Apple silicon, unless the package contains a working one.
 *
 * A failed build prints instructions and does not fail the installation, because npm would hide the reason. With `--strict`, the
 * exit code is 1: `install.sh` and updates of the agent use this option.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const native = join(dirname(createRequire(import.meta.url).resolve('@inference/enclave/package.json')), 'native');
const build = join(native, 'build.sh');
const helper = join(native, 'bin', 'inference-enclave');

if (process.platform === 'darwin' && process.arch === 'arm64' && !works(helper)) {
  console.log('Building the Secure Enclave helper …');
  const { status } = spawnSync('/bin/sh', [build], { stdio: 'inherit' });
  if (status !== 0 || !works(helper)) {
    console.error('The Secure Enclave helper was not built, so that this Mac cannot serve yet.');
    console.error('Install the command line tools (xcode-select --install), then run:');
    console.error(`  sh '${build}'`);
    if (process.argv.includes('--strict')) process.exit(1);
  }
}

/** Whether the helper starts and answers as a Secure Enclave helper. A damaged helper, or one of another system, does not. */
function works(path) {
  if (!existsSync(path)) return false;
  const { stdout } = spawnSync(path, ['--data-dir', join(native, 'bin')], { input: '{"id":1,"op":"hello"}\n', timeout: 10_000 });
  return stdout?.toString().includes('"kind":"secure_enclave"') ?? false;
}
