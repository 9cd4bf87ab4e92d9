/** Decoding of image files to the pixels that a projector sees. */
import { crc32 } from 'node:zlib';
import sharp from 'sharp';
import { expect, test } from 'vitest';
import { decodeBitmap, MAX_BITMAP_PIXELS } from '../../src/engine/vision/bitmap.js';

function plain(width: number, height: number, background: string | { r: number; g: number; b: number; alpha: number }) {
  return sharp({ create: { width, height, channels: typeof background === 'string' ? 3 : 4, background } });
}

const pixel = (rgb: Uint8Array | undefined, index: number): number[] => [...(rgb ?? []).subarray(3 * index, 3 * index + 3)];

test('transparent pixels are white', async () => {
  const bitmap = await decodeBitmap(await plain(2, 2, { r: 9, g: 9, b: 9, alpha: 0 }).png().toBuffer());
  expect(pixel(bitmap?.rgb, 0)).toEqual([255, 255, 255]);
});

test.each([
  ['grey', (image: sharp.Sharp) => image.toColourspace('b-w').png()],
  ['16-bit', (image: sharp.Sharp) => image.toColourspace('rgb16').png()],
  ['CMYK', (image: sharp.Sharp) => image.toColourspace('cmyk').jpeg({ quality: 100 })],
  ['palette', (image: sharp.Sharp) => image.png({ palette: true })],
  ['WebP', (image: sharp.Sharp) => image.webp({ lossless: true })],
  ['GIF', (image: sharp.Sharp) => image.gif()],
])('%s files become RGB', async (_kind, encode) => {
  const bitmap = await decodeBitmap(await encode(plain(8, 4, 'rgb(128, 128, 128)')).toBuffer());
  expect(bitmap).toMatchObject({ width: 8, height: 4 });
  expect(bitmap?.rgb).toHaveLength(96);
  for (const value of bitmap?.rgb ?? []) expect(Math.abs(value - 128)).toBeLessThanOrEqual(16);
});

test('the orientation of a photo is applied', async () => {
  const file = await plain(6, 3, 'red').jpeg().withMetadata({ orientation: 6 }).toBuffer();
  expect(await decodeBitmap(file)).toMatchObject({ width: 3, height: 6 });
});

test('large and thin images become bounded bitmaps', async () => {
  const large = await decodeBitmap(await plain(2800, 2100, 'red').png().toBuffer());
  expect((large?.width ?? 0) * (large?.height ?? 0)).toBeLessThanOrEqual(MAX_BITMAP_PIXELS * 1.001);
  expect((large?.width ?? 0) / (large?.height ?? 1)).toBeCloseTo(4 / 3, 2);
  expect(await decodeBitmap(await plain(800, 1, 'red').png().toBuffer())).toMatchObject({ width: 800, height: 4 });
});

test('more than 40 megapixels are refused by the header alone', async () => {
  const file = await plain(7, 6, 'red').png().toBuffer();
  file.writeUInt32BE(7000, 16);
  file.writeUInt32BE(6000, 20);
  file.writeUInt32BE(crc32(file.subarray(12, 29)), 29);
  expect(await decodeBitmap(file)).toBeNull();
});
