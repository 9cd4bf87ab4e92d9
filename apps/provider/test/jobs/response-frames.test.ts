/** Plaintext of an answer is overwritten in memory after sealing, or when dropped. */
import type { ResponseHash, ResponseSealer } from '@inference/protocol/crypto';
import { expect, it } from 'vitest';
import { ResponseFrames } from '../../src/jobs/response-frames.js';

const isZero = (bytes: Uint8Array): boolean => bytes.every((byte) => byte === 0);

function frames(credit: number): { frames: ResponseFrames; sealed: { bytes: Uint8Array; text: string }[] } {
  const sealed: { bytes: Uint8Array; text: string }[] = [];
  const sealer = {
    seal: (bytes: Uint8Array) => {
      sealed.push({ bytes, text: Buffer.from(bytes).toString() });
      return new Uint8Array(0);
    },
  } as unknown as ResponseSealer;
  const hash = { update: () => {} } as unknown as ResponseHash;
  return {
    frames: new ResponseFrames(sealer, hash, { sendFrame: (_bytes, sent) => sent() }, credit, new AbortController().signal),
    sealed,
  };
}

it('text is overwritten after sealing, also when joined from several pieces', async () => {
  const { frames: out, sealed } = frames(5);
  await out.write('one ');
  await out.write('two ');
  await out.write('three');
  out.grant(100);
  await out.finish();
  expect(sealed.map(({ text }) => text).join('')).toBe('one two three');
  expect(sealed.length).toBeGreaterThan(1);
  for (const { bytes } of sealed) expect(isZero(bytes)).toBe(true);
});

it('bytes owned by the caller are not overwritten', async () => {
  const { frames: out } = frames(1000);
  const image = Uint8Array.of(1, 2, 3);
  await out.writeUnsigned(image);
  await out.finish();
  expect([...image]).toEqual([1, 2, 3]);
});
