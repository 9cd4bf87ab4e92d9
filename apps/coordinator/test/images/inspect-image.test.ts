import { describe, expect, it } from 'vitest';
import { inspectImage } from '../../src/images/inspect-image.js';
import { picture } from './pictures.js';

const expected = { format: 'png', width: 64, height: 48 } as const;

describe("inspection of a provider's image", () => {
  it.each(['png', 'jpeg', 'webp'] as const)('accepts a %s of the requested size', async (format) => {
    expect(await inspectImage(await picture('64x48', format), { ...expected, format })).toBeNull();
  });

  it('requires the requested format', async () => {
    expect(await inspectImage(await picture('64x48', 'webp'), expected)).toBe('image.format');
    expect(await inspectImage(await picture('64x48', 'gif'), expected)).toBe('image.format');
    expect(await inspectImage(Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="64" height="48"/>'), expected)).toBe(
      'image.format',
    );
    expect(await inspectImage(new Uint8Array(), expected)).toBe('image.format');
  });

  it.each(['48x64', '64x47', '65x48', '1024x1024'])('rejects %s where 64x48 was requested', async (size) => {
    expect(await inspectImage(await picture(size), expected)).toBe('image.size');
  });

  it('requires a complete image, for every header', async () => {
    const image = await picture('64x48');
    expect(await inspectImage(image.subarray(0, image.length - 24), expected)).toBe('image.unreadable');
    expect(await inspectImage(image.subarray(0, 33), expected)).toBe('image.unreadable');
    const noise = Buffer.concat([image.subarray(0, 33), Buffer.alloc(500, 7)]);
    expect(await inspectImage(noise, expected)).toBe('image.unreadable');
    const jpeg = await picture('64x48', 'jpeg');
    expect(await inspectImage(jpeg.subarray(0, jpeg.length / 2), { ...expected, format: 'jpeg' })).toBe('image.unreadable');
  });

  it('does not decode an image that claims billions of pixels', async () => {
    const bomb = Buffer.from(await picture('64x48'));
    bomb.writeUInt32BE(60_000, 16);
    bomb.writeUInt32BE(60_000, 20);
    expect(await inspectImage(bomb, expected)).not.toBeNull();
  });
});
