/**
 * The environment of a process that holds a model: what it needs to find files and devices, and no more. Nothing of it changes how
 * programs are loaded (NODE_OPTIONS, LD_PRELOAD, DYLD_…), and no key of anybody gets there.
 */
const PASSED = ['PATH', 'HOME', 'TMPDIR', 'LANG', 'TZ', 'CUDA_VISIBLE_DEVICES'];

export function engineEnvironment(
  more: Readonly<Record<string, string>> = {},
  env: Readonly<Record<string, string | undefined>> = process.env,
): Record<string, string> {
  return { ...Object.fromEntries(PASSED.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]]))), ...more };
}
