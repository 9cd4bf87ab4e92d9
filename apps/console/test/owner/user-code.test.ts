import { expect, it } from 'vitest';
import { parseUserCode } from '../../src/pages/owner/user-code.js';

it('a code is read in any case, with any dash and space', () => {
  for (const text of ['WDJB-MJHT', 'wdjbmjht', ' wdjb mjht ', 'Wdjb–Mjht', 'w d j b m j h t', 'WDJB_MJHT']) {
    expect([text, parseUserCode(text)]).toEqual([text, { kind: 'code', code: 'WDJB-MJHT' }]);
  }
});

it('an invalid code is refused with the reason', () => {
  const problem = (text: string): string => {
    const typed = parseUserCode(text);
    return typed.kind === 'refused' ? typed.problem : `read as ${typed.code}`;
  };
  expect(problem('')).toMatch(/Enter the code/);
  expect(problem('WDJB')).toMatch(/has 4/);
  expect(problem('WDJB-MJHTX')).toMatch(/has 9/);
  expect(problem('WDJA-MJHT')).toMatch(/“A”/);
  expect(problem('WDJ8-MJHT')).toMatch(/“8”/);
  expect(problem('yDJB-MJHT')).toMatch(/“Y”/);
  expect(problem('🙂DJB-MJHT')).toMatch(/“🙂”/);
});
