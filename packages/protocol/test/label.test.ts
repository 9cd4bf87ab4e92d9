import { Compile } from 'typebox/compile';
import { describe, expect, it } from 'vitest';
import { cleanLabel, labelSchema } from '../src/label.js';
import { parseProviderMessage } from '../src/wire/parse-message.js';

const GOOD = ['Apple M4 Max', 'Mac16,10', "Tim's 70B (8-bit, v1.2) + tools", '通义千问 7B', 'Modèle №1', '15.3.1 (24D70)'];
const BAD = [
  ['a line break', 'a\r\nSet-Cookie: x=1'],
  ['a control character', 'a\u0000b'],
  ['an escape sequence', '\u001b[31mred'],
  ['markup', '<script>alert(1)</script>'],
  ['an entity', 'a&lt;b'],
  ['a quote', 'a" onload="x'],
  ['a backslash', 'a\\u003c'],
  ['a direction override', 'abc\u202etxt.exe'],
  ['an invisible character', 'a\u200bb'],
  ['a line separator', 'a\u2028b'],
  ['half a character', 'a\ud83d'],
] as const;

describe('labels', () => {
  const validator = Compile(labelSchema(64));

  it.each(GOOD)('takes %j and leaves it as it is', (text) => {
    expect(validator.Check(text)).toBe(true);
    expect(cleanLabel(text, 64, 'x')).toBe(text);
  });

  it.each(BAD)('refuses %s, and cleaning makes a label of it', (_what, text) => {
    expect(validator.Check(text)).toBe(false);
    expect(validator.Check(cleanLabel(text, 64, 'x'))).toBe(true);
  });

  it('is bounded, and cleaning never halves a character', () => {
    expect(validator.Check('')).toBe(false);
    expect(validator.Check('a'.repeat(65))).toBe(false);
    expect(cleanLabel('a'.repeat(63) + '🎉'.repeat(3), 64, 'x')).toBe('a'.repeat(63));
    expect(cleanLabel('<<<>>>', 64, 'unknown')).toBe('unknown');
  });

  it.each(BAD)('keeps %s out of what providers tell of models and machines', (_what, text) => {
    const offer = { id: 'pico', model_type: 'text', display_name: 'Pico', quantization: '8bit', context_length: 512 };
    const kind = (models: object[]) => parseProviderMessage(JSON.stringify({ type: 'models', models })).kind;
    expect(kind([offer])).toBe('message');
    expect(kind([{ ...offer, display_name: text }])).toBe('invalid');
    expect(kind([{ ...offer, quantization: text }])).toBe('invalid');
    const statement = { payload: 'e30=', signature: 'MAA=' };
    const register = { type: 'register', attestation: statement, challenge: statement, key: statement, models: [offer], slots: 1 };
    const registering = (chip_family: string) =>
      parseProviderMessage(JSON.stringify({ ...register, hardware: { chip_family, cpu_cores: 1, gpu_cores: 0, bandwidth_gbs: 0 } })).kind;
    expect(registering('M4')).toBe('message');
    expect(registering(text)).toBe('invalid');
  });
});
