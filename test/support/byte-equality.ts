/** Setup for every test file: compares byte arrays at once. Without it, `toEqual` takes 2 µs per byte: seconds for a model file. */
import { expect } from 'vitest';

// Registered once per process: a process runs many test files, and each loads this module again.
const KEY = Symbol.for('test/support/byte-equality');
const shared = globalThis as { [KEY]?: true };
if (shared[KEY] === undefined) expect.addEqualityTesters([haveEqualBytes]);
shared[KEY] = true;

/** True for equal bytes of the same type. All other values are compared as usual. */
function haveEqualBytes(one: unknown, other: unknown): true | undefined {
  const areBytes = one instanceof Uint8Array && other instanceof Uint8Array && one.constructor === other.constructor;
  return areBytes && Buffer.compare(one, other) === 0 ? true : undefined;
}
