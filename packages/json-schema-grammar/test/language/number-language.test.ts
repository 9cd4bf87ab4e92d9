/** Languages of numbers: bounds and exclusions at the edges of decimal notation. */
import { expect, it } from 'vitest';
import { ANY_NUMBER, languageOfNumber, type NumberBounds } from '../../src/language/number-language.js';
import { LanguageFactory } from '../../src/language/regular-language.js';

function contains(bounds: Partial<NumberBounds>, text: string): boolean {
  const languages = new LanguageFactory();
  return languages.contains(languageOfNumber(languages, { ...ANY_NUMBER, ...bounds }), text);
}

it.each([
  [1e21, ['0', '0.1', '1', '100000000000000'], []],
  [-1.5e22, ['-0.15', '-1.5', '-15'], []],
  [1e-7, ['0', '0.1', '0.000001'], []],
  [0.000001, ['0', '0.000002', '-0.000001'], ['0.000001']],
  [5, ['5.1', '-5', '50'], ['5', '5.0']],
  [-2.5, ['2.5', '-2.51'], ['-2.5', '-2.50']],
])('the exclusion of %d excludes only spellings of this number', (excluded, allowed, forbidden) => {
  for (const text of allowed) expect(contains({ except: [excluded] }, text)).toBe(true);
  for (const text of forbidden) expect(contains({ except: [excluded] }, text)).toBe(false);
});

it.each([
  [1e21, ['-1', '999999999999999'], []],
  [-1e21, [], ['-999999999999999', '0']],
  [1.5e-7, ['0', '-1'], ['0.000001', '1']],
])('the maximum %d separates numbers of fewer digits', (value, allowed, forbidden) => {
  const max = { value, isExclusive: false };
  for (const text of allowed) expect(contains({ max }, text)).toBe(true);
  for (const text of forbidden) expect(contains({ max }, text)).toBe(false);
});
