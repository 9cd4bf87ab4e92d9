/** Writes of one turn of the event loop are one system call. */
import { Writable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { GatheredWrites } from '../../src/session/gathered-writes.js';

/** A stream with the number of chunks of each system call. */
function countedStream(): { readonly stream: Writable; readonly calls: number[] } {
  const calls: number[] = [];
  const stream = new Writable({
    writev(chunks, done) {
      calls.push(chunks.length);
      done();
    },
  });
  return { stream, calls };
}

test('the writes of one turn leave together, in the next turn anew', async () => {
  const { stream, calls } = countedStream();
  const writes = new GatheredWrites(stream);
  const write = (text: string): void => {
    writes.begin();
    stream.write(text);
  };
  write('job_accepted');
  write('frame');
  write('job_completed');
  expect(calls).toEqual([]);
  await nextTurn();
  expect(calls).toEqual([3]);
  write('load');
  await nextTurn();
  expect(calls).toEqual([3, 1]);
});

test('flush writes at once', async () => {
  const { stream, calls } = countedStream();
  const writes = new GatheredWrites(stream);
  writes.begin();
  stream.write('rejected');
  writes.flush();
  expect(calls).toEqual([1]);
  await nextTurn();
  expect(calls).toEqual([1]);
});
