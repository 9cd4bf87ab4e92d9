/**
 * Install step: on a Mac with Apple silicon it builds the Secure Enclave helper, which the agent then uses by itself. Elsewhere
 * there is nothing to do. A helper that cannot be built does not fail the install: everything but a real enclave works.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

if (process.platform === 'darwin' && process.arch === 'arm64') {
  const build = fileURLToPath(new URL('../packages/enclave/native/build.sh', import.meta.url));
  const { status } = spawnSync('sh', [build], { stdio: 'inherit' });
  if (status !== 0) {
    console.error('The enclave helper was not built. Install the command line tools (xcode-select --install), then run:');
    console.error(`  sh ${build}`);
  }
}
