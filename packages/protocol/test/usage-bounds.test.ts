import { expect, test } from 'vitest';
import { maxImagesIn, utf8 } from '../src/index.js';

test.each([
  [1, '{"type":"image"}'],
  [1, String.raw`{"type":"\u0069mage"}`],
  [1, String.raw`{"image\u005furl":"x"}`],
  [1, String.raw`{"image\u005Furl":"x"}`],
  [1, String.raw`{"type":"input\u005f\u0069\u006d\u0061\u0067\u0065"}`],
  [1, String.raw`{"text":"\\\u0041","type":"\u0066ile"}`],
  [0, String.raw`{"text":"an escaped backslash: \\u0069mage"}`],
  [0, String.raw`{"text":"\u0022image\u0022"}`],
  [0, String.raw`{"text":"\"image\""}`],
])('%d images may be in %s', (count, request) => {
  expect(maxImagesIn(utf8(request))).toBe(count);
});
