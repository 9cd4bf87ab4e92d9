import { DEFAULT_ROLLOUT_POLICY } from '@inference/formats';
import { describe, expect, it } from 'vitest';
import { formatStages, parseStages } from '../../src/pages/admin/releases/policy-stages.js';

describe('the stages of a rollout policy', () => {
  it('are the same after they were shown and saved', () => {
    expect(parseStages(formatStages(DEFAULT_ROLLOUT_POLICY.stages))).toEqual(DEFAULT_ROLLOUT_POLICY.stages);
  });

  it('may be written with percent signs, commas and empty lines', () => {
    expect(parseStages(' 2.5%, 60, 5 \n\n100 1440 0\n')).toEqual([
      { percent: 2.5, soak_minutes: 60, min_machines: 5 },
      { percent: 100, soak_minutes: 1440, min_machines: 0 },
    ]);
  });

  it.each([
    ['equal lines', '5 240 20\n5 240 20\n100 1440 0', 'Two stages have 5 percent.'],
    ['equal last lines', '100 1440 0\n100 1440 0', 'Two stages have 100 percent.'],
    ['equal percentages', '5 240 20\n5.0 60 5\n100 1440 0', 'Two stages have 5 percent.'],
    ['a lower percentage', '5 240 20\n1 60 5\n100 1440 0', 'Enter lines such as'],
    ['no last stage', '5 240 20', 'Enter lines such as'],
    ['no stage', '\n', 'Enter lines such as'],
    ['a stage of 0 percent', '0 240 20\n100 1440 0', 'Enter lines such as'],
    ['another text', '5 240\n100 1440 0', 'Enter lines such as'],
  ])('are refused with %s', (_what, text, message) => {
    expect(parseStages(text)).toContain(message);
  });
});
