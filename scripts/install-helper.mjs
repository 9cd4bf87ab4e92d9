/**
 * npm install step: builds the Secure Enclave helper on a Mac with Apple silicon; does nothing on other systems. A failed build
 * does not fail the installation: the agent then works with a simulated enclave only.
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
