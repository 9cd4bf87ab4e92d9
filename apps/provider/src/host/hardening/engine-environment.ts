/** `engineEnvironment`: variables for model processes. Excludes keys and loader variables (NODE_OPTIONS, LD_PRELOAD, DYLD_…). */
const PASSED = ['PATH', 'HOME', 'TMPDIR', 'LANG', 'TZ', 'CUDA_VISIBLE_DEVICES'];

export function engineEnvironment(
  more: Readonly<Record<string, string>> = {},
  env: Readonly<Record<string, string | undefined>> = process.env,
): Record<string, string> {
  return { ...Object.fromEntries(PASSED.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]]))), ...more };
}
