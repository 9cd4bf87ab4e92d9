/** `sized`: chooses between the full size of a bench and the small size of CI's smoke run. */

export const isSmoke = process.argv.includes('--smoke');

/** The size for this run. `smoke` is for `npm run bench -- --smoke`. */
export function sized<Value>(full: Value, smoke: Value): Value {
  return isSmoke ? smoke : full;
}
