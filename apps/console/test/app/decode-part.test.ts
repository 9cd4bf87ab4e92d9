import { expect, it } from 'vitest';
import { decodePart } from '../../src/routing/decode-part.js';

it.each([
  ['owner%2Fmodel', 'owner/model'],
  ['%C3%BCber', 'über'],
  ['plain', 'plain'],
  ['%', '%'],
  ['100%', '100%'],
  ['%C3', '%C3'],
])('%s is read as %s', (part, decoded) => {
  expect(decodePart(part)).toBe(decoded);
});
