/** Stages of a rollout policy as text, with one stage per line: percent, minutes and machines. */
import type { RolloutPolicy } from '@inference/formats';

type Stages = RolloutPolicy['stages'];

const STAGE_LINE = /^(\d+(?:\.\d+)?)\s*%?[\s,]+(\d+)[\s,]+(\d+)$/;

export function formatStages(stages: Stages): string {
  return stages.map(({ percent, soak_minutes, min_machines }) => `${percent} ${soak_minutes} ${min_machines}`).join('\n');
}

/** Returns the stages, or a string: the message for the user about invalid text. Ignores empty lines. */
export function parseStages(text: string): Stages | string {
  const stages: Stages = [];
  for (const line of text.split('\n').map((one) => one.trim())) {
    if (line === '') continue;
    const [, percent, minutes, machines] = STAGE_LINE.exec(line) ?? [];
    if (percent === undefined) return INVALID;
    const before = stages.at(-1)?.percent ?? 0;
    if (Number(percent) === before && before > 0) return `Two stages have ${before} percent. Remove one, or change its percentage.`;
    if (Number(percent) <= before) return INVALID;
    stages.push({ percent: Number(percent), soak_minutes: Number(minutes), min_machines: Number(machines) });
  }
  return stages.at(-1)?.percent === 100 ? stages : INVALID;
}

const INVALID = 'Enter lines such as “5 240 20”. Percentages must increase, and the last must be 100.';
