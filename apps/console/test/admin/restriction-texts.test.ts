/** Texts about restrictions of machines: planned end and reason. */
import { expect, test } from 'vitest';
import { restrictionEnd, restrictionReason } from '../../src/pages/admin/providers/restriction-texts.js';

test('a probation has no planned end, because `until` is its start', () => {
  expect(restrictionEnd({ state: 'on_probation', until: 1000 })).toBeNull();
  expect(restrictionEnd({ state: 'cooling_down', until: 1000 })).toBe(1000);
  expect(restrictionEnd({ state: 'quarantined', until: 1000 })).toBe(1000);
});

test('the reason names the kind of failure and the exact problem, as far as known', () => {
  expect(restrictionReason({ reason: 'jobs_failed', detail: 'bad_frame' })).toBe('jobs failed: bad_frame');
  expect(restrictionReason({ reason: null, detail: null })).toBe('');
});
