/** Detects debuggers and preloaded code (NODE_OPTIONS, LD_PRELOAD), which could read prompts and keys, and blocks the debugger's signal. */
import { url } from 'node:inspector';

/** Node options that change limits or output, but load nothing and open nothing. */
const HARMLESS =
  /^--(max-old-space-size|max-semi-space-size|stack-trace-limit|no-warnings|no-deprecation|enable-source-maps|use-openssl-ca|use-bundled-ca)(=[\w-]*)?$/;
const LOADERS = ['LD_PRELOAD', 'DYLD_INSERT_LIBRARIES'];

/** Reason why the daemon must not run in this process, as a sentence without its full stop; null if none. */
export function inspectorProblem(
  execArgv: readonly string[] = process.execArgv,
  env: Readonly<Record<string, string | undefined>> = process.env,
): string | null {
  if (url() !== undefined || execArgv.some((argument) => /^--(inspect|debug)/.test(argument))) {
    return 'a debugger is attached to this process; start it without --inspect';
  }
  const options = (env.NODE_OPTIONS ?? '').split(/\s+/).filter((word) => word !== '');
  const harmful = options.find((word) => !HARMLESS.test(word));
  if (harmful !== undefined) return `NODE_OPTIONS contains ${harmful}, which could change this program; unset the variable and start again`;
  const loader = LOADERS.find((name) => env[name]);
  if (loader !== undefined) return `${loader} is set, which could change this program; unset the variable and start again`;
  return null;
}

/** Blocks SIGUSR1, which opens Node's debugger unless the process listens for the signal. Calls `onRefused` at each signal. */
export function refuseInspectorSignal(onRefused: () => void): void {
  process.on('SIGUSR1', onRefused);
}
