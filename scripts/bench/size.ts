/** Bench sizes: full, and the smoke run of CI, which only proves completion. */

export const isSmoke = process.argv.includes('--smoke');

export function sized<Value>(full: Value, smoke: Value): Value {
  return isSmoke ? smoke : full;
}
