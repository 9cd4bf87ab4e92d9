import { describe, expect, it } from 'vitest';
import { parseRange } from '../../../src/routes/inference/image-files.js';

describe('the Range header', () => {
  it.each([
    ['bytes=0-0', { first: 0, last: 0 }],
    ['bytes=2-5', { first: 2, last: 5 }],
    ['BYTES=2-5', { first: 2, last: 5 }],
    ['bytes=2-', { first: 2, last: 9 }],
    ['bytes=9-', { first: 9, last: 9 }],
    ['bytes=2-99', { first: 2, last: 9 }],
    ['bytes=-3', { first: 7, last: 9 }],
    ['bytes=-99', { first: 0, last: 9 }],
    ['bytes=10-', 'unsatisfiable'],
    ['bytes=10-12', 'unsatisfiable'],
    ['bytes=-0', 'unsatisfiable'],
    [undefined, null],
    ['', null],
    ['bytes=5-2', null],
    ['bytes=a-b', null],
    ['bytes=-', null],
    ['bytes=0-1,4-5', null],
    ['lines=0-1', null],
    ['bytes=-1-2', null],
    [`bytes=${'9'.repeat(400)}-`, null],
  ] as const)('%s of ten bytes is %j', (header, range) => {
    expect(parseRange(header, 10)).toEqual(range);
  });
});
