/**
 * `inference-verify proxy`: runs the local proxy of `@inference/client`.
 *
 * Imports the client at run time, because the client depends on this package.
 */
import { UnavailableError } from './command.js';

const PROXY_MODULE = '@inference/client/proxy-program';

interface ProxyModule {
  /** Resolves with the exit code. */
  runProxy(program: string, args: readonly string[]): Promise<number>;
}

export const proxyProgram = {
  usage: 'proxy --base-url URL [--listen 127.0.0.1:8086] [--policy FILE] [--allow-simulated] [--state FILE]',
  summary: 'Serve the HTTP API of URL on this machine, end-to-end encrypted. Needs the package @inference/client.',
  /** Resolves with the exit code. Throws {@link UnavailableError} when the package is missing. */
  async run(args: readonly string[]): Promise<number> {
    const { runProxy } = await loadProxy();
    return runProxy('inference-verify proxy', args);
  },
};

async function loadProxy(): Promise<ProxyModule> {
  try {
    return (await import(PROXY_MODULE)) as ProxyModule;
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND')) throw error;
    throw new UnavailableError('the command proxy needs the package @inference/client: npm install @inference/client');
  }
}
