import { describe, expect, it } from 'vitest';
import { ServiceTimes } from '../../../src/inference/queue/service-times.js';

describe('the wait for a slot', () => {
  it('is estimated only after measurements, by the number of slots', () => {
    const times = new ServiceTimes();
    times.add('m', 1000);
    times.add('m', 3000);
    expect(times.waitMs('m', 4, 2)).toBeNull();
    times.add('m', 2000);
    expect(times.waitMs('m', 4, 2)).toBe(5000);
    expect(times.waitMs('m', 0, 1)).toBe(2000);
    expect(times.waitMs('m', 0, 0)).toBeNull();
    expect(times.waitMs('other', 0, 1)).toBeNull();
  });

  it('follows when jobs become longer', () => {
    const times = new ServiceTimes();
    for (let count = 0; count < 10; count++) times.add('m', 100);
    for (let count = 0; count < 60; count++) times.add('m', 1000);
    expect(times.waitMs('m', 0, 1)).toBeGreaterThan(950);
  });
});
