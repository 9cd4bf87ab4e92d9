import { describe, expect, test } from 'vitest';
import { concatBytes, utf8 } from '../src/bytes.js';
import {
  bodyPartHeader,
  encodeImageParts,
  type ImagePartsBounds,
  ImagePartsError,
  type ImagePartsProblem,
  ImagePartsReader,
  imagePartHeader,
  maxImageBytes,
} from '../src/image-parts.js';

const body = utf8('{"created":1}');
const images = [Uint8Array.from([1, 2, 3]), Uint8Array.from([4]), Uint8Array.from([5, 6])];
const bounds: ImagePartsBounds = { images: 3, maxImageBytes: 3, maxBodyBytes: 64 };

function problemOf(bytes: Uint8Array, within: ImagePartsBounds = bounds): ImagePartsProblem | null {
  const reader = new ImagePartsReader(within);
  try {
    reader.push(bytes);
    reader.end();
    return null;
  } catch (error) {
    if (error instanceof ImagePartsError) return error.problem;
    throw error;
  }
}

const image = (index: number, bytes: Uint8Array) => concatBytes(imagePartHeader(index, bytes.length), bytes);
const last = concatBytes(bodyPartHeader(body.length), body);
const header = (kind: number, index: number, length: number) => {
  const bytes = new Uint8Array(6);
  bytes[0] = kind;
  bytes[1] = index;
  new DataView(bytes.buffer).setUint32(2, length);
  return bytes;
};

describe('image parts', () => {
  test('are read back however they are cut', () => {
    const whole = concatBytes(...encodeImageParts(images, body));
    for (let size = 1; size <= whole.length; size++) {
      const reader = new ImagePartsReader(bounds);
      for (let at = 0; at < whole.length; at += size) reader.push(whole.subarray(at, at + size));
      expect(reader.end()).toEqual({ images, body });
    }
  });

  test('have the layout that is written down', () => {
    expect([...concatBytes(...encodeImageParts([Uint8Array.from([9])], utf8('{}')))]).toEqual([
      ...[1, 0, 0, 0, 0, 1, 9],
      ...[0, 0, 0, 0, 0, 2, 123, 125],
    ]);
  });

  test('may be a body alone, where it holds the images', () => {
    const reader = new ImagePartsReader({ ...bounds, images: 0 });
    reader.push(concatBytes(...encodeImageParts([], body)));
    expect(reader.end()).toEqual({ images: [], body });
  });

  test('are stored unchanged, even if the received buffer changes later', () => {
    const reader = new ImagePartsReader({ ...bounds, images: 1 });
    const buffer = concatBytes(...encodeImageParts([images[0] as Uint8Array], body));
    reader.push(buffer);
    buffer.fill(0);
    expect(reader.end()).toEqual({ images: [images[0]], body });
  });

  const [first, second, third] = images as [Uint8Array, Uint8Array, Uint8Array];
  const three = concatBytes(image(0, first), image(1, second), image(2, third));
  test.each<[string, Uint8Array, ImagePartsProblem]>([
    ['nothing', new Uint8Array(), 'cut_off'],
    ['half a header', Uint8Array.from([1, 0]), 'cut_off'],
    ['images without a body', three, 'cut_off'],
    ['half a body', concatBytes(three, last.subarray(0, -1)), 'cut_off'],
    ['a kind that is not known', header(2, 0, 1), 'unknown_kind'],
    ['an image out of order', image(1, second), 'wrong_index'],
    ['an image twice', concatBytes(image(0, first), image(0, first)), 'wrong_index'],
    ['a body with an index', concatBytes(three, header(0, 1, 1)), 'wrong_index'],
    ['an image too many', concatBytes(three, image(3, first)), 'too_many_images'],
    ['an image too few', concatBytes(image(0, first), last), 'too_few_images'],
    ['an image of no bytes', header(1, 0, 0), 'empty'],
    ['a body of no bytes', concatBytes(three, header(0, 0, 0)), 'empty'],
    ['the announcement of an image over the bound', header(1, 0, 4), 'image_too_large'],
    ['the announcement of 4 GiB', header(1, 0, 0xffff_ffff), 'image_too_large'],
    ['the announcement of a body over the bound', concatBytes(three, header(0, 0, 65)), 'body_too_large'],
    ['a second body', concatBytes(three, last, last), 'after_body'],
    ['a byte too many', concatBytes(three, last, new Uint8Array(1)), 'after_body'],
  ])('refuse %s', (_, bytes, problem) => {
    expect(problemOf(bytes)).toBe(problem);
  });

  test('cannot be written where no reader would take them', () => {
    expect(() => imagePartHeader(4, 1)).toThrow(RangeError);
    expect(() => imagePartHeader(-1, 1)).toThrow(RangeError);
    expect(() => imagePartHeader(0, 0)).toThrow(RangeError);
    expect(() => bodyPartHeader(2 ** 32)).toThrow(RangeError);
  });

  test('leave room for the largest image that any format makes of so many pixels', () => {
    expect(maxImageBytes(1024, 1024)).toBe(4_259_840);
  });
});
