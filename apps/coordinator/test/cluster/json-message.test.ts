import Type from 'typebox';
import { Compile } from 'typebox/compile';
import { expect, it } from 'vitest';
import { encodeMessage, parseMessage } from '../../src/cluster/json-message.js';

const validator = Compile(Type.Object({ name: Type.String({ maxLength: 8 }) }));

it('reads its own output, also inside a larger buffer', () => {
  const bytes = encodeMessage({ name: 'größer' });
  const larger = Buffer.concat([Buffer.from('{{'), bytes, Buffer.from('}}')]);
  expect(parseMessage(bytes, validator)).toEqual({ name: 'größer' });
  expect(parseMessage(larger.subarray(2, -2), validator)).toEqual({ name: 'größer' });
});

it.each(['', '{', 'null', '[]', '{"name":1}', '{"name":"longer than 8"}', '{"name":"a"} x'])('refuses %j', (text) => {
  expect(parseMessage(Buffer.from(text), validator)).toBeNull();
});
