import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fromLocalInput, toLocalInput } from '../../src/pages/admin/incidents/local-times.js';

describe('the times of an incident', () => {
  const before = process.env.TZ;
  beforeEach(() => {
    process.env.TZ = 'Europe/Berlin';
  });
  afterEach(() => {
    if (before === undefined) delete process.env.TZ;
    else process.env.TZ = before;
  });

  it.each([
    ['2026-11-26T08:30:00.000Z', '2026-11-26T09:30'],
    ['2026-11-26T08:30:15.000Z', '2026-11-26T09:30:15'],
    ['2026-11-26T08:30:15.250Z', '2026-11-26T09:30:15.25'],
    ['2026-11-26T08:30:00.007Z', '2026-11-26T09:30:00.007'],
  ])('keep their seconds: %s', (iso, value) => {
    expect(toLocalInput(iso)).toBe(value);
    expect(fromLocalInput(value)).toBe(iso);
  });

  it.each(['2026-10-25T00:30:00.000Z', '2026-10-25T01:30:00.000Z'])(
    'stay as they are unless edited, also in a repeated hour: %s',
    (iso) => {
      const value = toLocalInput(iso);
      expect(value).toBe('2026-10-25T02:30');
      expect(fromLocalInput(value, iso)).toBe(iso);
      expect(fromLocalInput('2026-10-25T09:00', iso)).toBe('2026-10-25T08:00:00.000Z');
    },
  );

  it('are missing while the input is incomplete', () => {
    expect(fromLocalInput('')).toBeNull();
    expect(fromLocalInput('', '2026-11-26T08:30:00.000Z')).toBeNull();
  });
});
