/** `engineEnvironment`: environment variables for model processes: a few of this process, without secrets and loader variables, and `more`. */
const PASSED = ['PATH', 'HOME', 'TMPDIR', 'LANG', 'TZ', 'CUDA_VISIBLE_DEVICES'];

export function engineEnvironment(
  more: Readonly<Record<string, string>> = {},
  env: Readonly<Record<string, string | undefined>> = process.env,
): Record<string, string> {
  return { ...Object.fromEntries(PASSED.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]]))), ...more };
}
