/**
 * The noise schedule of a diffusion model: signal power of each training timestep, and the timesteps that sampling visits.
 *
 * Used by all samplers except rectified flow. Names of schedules and spacings are those of `scheduler_config.json` of diffusers.
 */

import type { SchedulerConfig } from '../../../models/image/scheduler-config.js';

/** Signal power per training timestep: ᾱ, the cumulative product of 1 − β. */
export function alphasOf(config: SchedulerConfig): Float64Array {
  const betas = config.betas ?? betasOf(config);
  const alphas = new Float64Array(betas.length);
  let product = 1;
  for (const [index, beta] of betas.entries()) {
    product *= 1 - beta;
    alphas[index] = product;
  }
  return config.zeroTerminalSnr ? withoutSignalAtTheEnd(alphas) : alphas;
}

/** Visited timesteps, noisiest first; not always integers. */
export function timestepsOf({ spacing, trainSteps, stepsOffset }: SchedulerConfig, steps: number): number[] {
  switch (spacing) {
    case 'linspace':
      return Array.from({ length: steps }, (_, index) =>
        steps === 1 ? trainSteps - 1 : ((trainSteps - 1) * (steps - 1 - index)) / (steps - 1),
      );
    case 'leading': {
      const ratio = Math.floor(trainSteps / steps);
      return Array.from({ length: steps }, (_, index) => Math.min(trainSteps - 1, (steps - 1 - index) * ratio + stepsOffset));
    }
    case 'trailing':
      return Array.from({ length: steps }, (_, index) => Math.round(trainSteps - (index * trainSteps) / steps) - 1);
    default:
      return spacing satisfies never;
  }
}

function betasOf({ betaSchedule, betaStart, betaEnd, trainSteps }: SchedulerConfig): number[] {
  const between = (start: number, end: number, index: number): number => start + ((end - start) * index) / Math.max(1, trainSteps - 1);
  const indexes = Array.from({ length: trainSteps }, (_, index) => index);
  switch (betaSchedule) {
    case 'linear':
      return indexes.map((index) => between(betaStart, betaEnd, index));
    case 'scaled_linear':
      return indexes.map((index) => between(Math.sqrt(betaStart), Math.sqrt(betaEnd), index) ** 2);
    case 'squaredcos_cap_v2': {
      const left = (time: number): number => Math.cos(((time + 0.008) / 1.008) * (Math.PI / 2)) ** 2;
      return indexes.map((index) => Math.min(0.999, 1 - left((index + 1) / trainSteps) / left(index / trainSteps)));
    }
    default:
      return betaSchedule satisfies never;
  }
}

/** Makes the last timestep pure noise. Lin et al., "Common diffusion noise schedules and sample steps are flawed", algorithm 1. */
function withoutSignalAtTheEnd(alphas: Float64Array): Float64Array {
  const roots = alphas.map(Math.sqrt);
  const first = roots[0] ?? 1;
  const last = roots.at(-1) ?? 0;
  // At least 2^-24, because Euler samplers divide by ᾱ.
  return roots.map((root) => Math.max(2 ** -24, (((root - last) * first) / Math.max(1e-12, first - last)) ** 2));
}
