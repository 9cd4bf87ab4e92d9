/** Escapes in patterns: characters match as with JavaScript's `RegExp`, or the pattern is refused. */
import { expect, it } from 'vitest';
import { languageOfPattern, PatternError } from '../../src/language/pattern-language.js';
import { LanguageFactory } from '../../src/language/regular-language.js';

const TEXTS = ['', 'a', 'A', 'B', '1', '-', 'u', 'u12', 'xx', '😀', '😀😀', '😁', 'é', '\u0012', '\u0002', '{', '\ufffd', 'a-b'];

it.each([
  String.raw`^\uD83D\uDE00$`,
  String.raw`^\ud83d\ude00+$`,
  String.raw`^[\uD83D\uDE00-\uD83D\uDE01]$`,
  String.raw`^[^\uD83D\uDE00]$`,
  String.raw`^[\uD83D\uDE00\u0041]+$`,
  String.raw`^\uD83D`,
  String.raw`^[\uD83D\u0041]$`,
  String.raw`^\u{D83D}\u{DE00}$`,
  String.raw`^\u{1F600}$`,
  String.raw`^\u{00041}$`,
  String.raw`^\u00411?$`,
  String.raw`^\x41$`,
  String.raw`^[\x41-\x42]$`,
])('%s matches as with RegExp', (pattern) => {
  const languages = new LanguageFactory();
  const language = languageOfPattern(languages, pattern);
  const expression = new RegExp(pattern, 'u');
  const matched = TEXTS.filter((text) => languages.contains(language, text));
  expect(matched).toEqual(TEXTS.filter((text) => expression.test(text)));
});

it('an identity escape, which the `u` flag forbids, matches as without the flag', () => {
  const languages = new LanguageFactory();
  const language = languageOfPattern(languages, String.raw`^a\-\u0062$`);
  expect(TEXTS.filter((text) => languages.contains(language, text))).toEqual(['a-b']);
});

it.each([
  String.raw`^\u12$`,
  String.raw`^\u$`,
  String.raw`^\x{2}$`,
  String.raw`^\x4$`,
  String.raw`^[\x4]$`,
  String.raw`^\u{}$`,
  String.raw`^\-\u{110000}$`,
  String.raw`^\u{2`,
  String.raw`^\-\xg1$`,
])('%s is refused as unsupported', (pattern) => {
  expect(() => new RegExp(pattern)).not.toThrow();
  expect(() => languageOfPattern(new LanguageFactory(), pattern)).toThrow(new PatternError('unsupported'));
});
