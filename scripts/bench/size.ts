/** The two sizes of a bench: to measure, and the smoke run of CI, which shows only that it comes to its end. */

export const isSmoke = process.argv.includes('--smoke');

export function sized<Value>(full: Value, smoke: Value): Value {
  return isSmoke ? smoke : full;
}
