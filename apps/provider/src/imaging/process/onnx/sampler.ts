/** `samplerOf` creates a sampler (Euler, DDIM, DDPM or rectified flow), which steps from noise to image by the model's predictions. */
import type { SchedulerConfig } from '../../../models/image/scheduler-config.js';
import type { Noise } from './noise.js';
import { alphasOf, timestepsOf } from './noise-schedule.js';

interface Sampler {
  /** Timesteps passed to the model, noisiest first. */
  readonly timesteps: readonly number[];
  /** Scale of the initial noise. */
  readonly firstScale: number;
  /** Factor of the latent in the model's input. */
  inputScale(step: number): number;
  /** Changes `latent` by the model's prediction at this step. */
  advance(step: number, latent: Float32Array, prediction: Float32Array, noise: Noise): void;
}

/** @param steps At least 1. */
export function samplerOf(config: SchedulerConfig, steps: number): Sampler {
  switch (config.kind) {
    case 'euler':
    case 'euler_ancestral':
      return eulerSampler(config, steps, config.kind === 'euler_ancestral');
    case 'ddim':
    case 'ddpm':
      return posteriorSampler(config, steps, config.kind === 'ddpm');
    case 'flow_euler':
      return flowSampler(config, steps);
    default:
      return config.kind satisfies never;
  }
}

/** Karras et al., "Elucidating the design space of diffusion-based generative models", in units of σ. */
function eulerSampler(config: SchedulerConfig, steps: number, ancestral: boolean): Sampler {
  const alphas = alphasOf(config);
  const all = Array.from(alphas, (alpha) => Math.sqrt((1 - alpha) / alpha));
  const timesteps = timestepsOf(config, steps);
  const sigmas = [...timesteps.map((timestep) => interpolate(all, timestep)), 0];
  const [first = 1] = sigmas;
  return {
    timesteps,
    firstScale: config.spacing === 'leading' ? Math.hypot(first, 1) : first,
    inputScale: (step) => 1 / Math.hypot(sigmas[step] as number, 1),
    advance: (step, latent, prediction, noise) => {
      const from = sigmas[step] as number;
      const to = sigmas[step + 1] as number;
      const fresh = ancestral ? Math.min(to, Math.sqrt((to ** 2 * Math.max(0, from ** 2 - to ** 2)) / from ** 2)) : 0;
      const rest = Math.sqrt(Math.max(0, to ** 2 - fresh ** 2));
      const width = from ** 2 + 1;
      for (let i = 0; i < latent.length; i++) {
        const x = latent[i] as number;
        const y = prediction[i] as number;
        const clean =
          config.prediction === 'epsilon' ? x - from * y : config.prediction === 'sample' ? y : x / width - (from / Math.sqrt(width)) * y;
        const next = x + ((x - clean) / from) * (rest - from);
        latent[i] = fresh > 0 ? next + fresh * noise.next() : next;
      }
    },
  };
}

/** Song et al., "Denoising diffusion implicit models", equation 12 with η = 0; if `stochastic`, Ho et al. (DDPM), equation 7. */
function posteriorSampler(config: SchedulerConfig, steps: number, stochastic: boolean): Sampler {
  const alphas = alphasOf(config);
  const timesteps = timestepsOf(config, steps).map(Math.round);
  const end = config.endsClean ? 1 : (alphas[0] as number);
  return {
    timesteps,
    firstScale: 1,
    inputScale: () => 1,
    advance: (step, latent, prediction, noise) => {
      const now = alphas[timesteps[step] as number] as number;
      const isLast = step + 1 === timesteps.length;
      const next = isLast ? (stochastic ? 1 : end) : (alphas[timesteps[step + 1] as number] as number);
      const [signal, spread] = [Math.sqrt(now), Math.sqrt(1 - now)];
      // Posterior weights of clean image, current latent and fresh noise.
      const ratio = now / next;
      const ofClean = (Math.sqrt(next) * (1 - ratio)) / (1 - now);
      const ofLatent = (Math.sqrt(ratio) * (1 - next)) / (1 - now);
      const fresh = isLast ? 0 : Math.sqrt(Math.max(1e-20, ((1 - next) / (1 - now)) * (1 - ratio)));
      for (let i = 0; i < latent.length; i++) {
        const x = latent[i] as number;
        const y = prediction[i] as number;
        const predicted =
          config.prediction === 'epsilon' ? (x - spread * y) / signal : config.prediction === 'sample' ? y : signal * x - spread * y;
        const clean = config.clip === null ? predicted : Math.max(-config.clip, Math.min(config.clip, predicted));
        if (stochastic) {
          const mean = ofClean * clean + ofLatent * x;
          latent[i] = isLast ? mean : mean + fresh * noise.next();
        } else latent[i] = Math.sqrt(next) * clean + (Math.sqrt(1 - next) * (x - signal * clean)) / Math.max(1e-12, spread);
      }
    },
  };
}

/** Rectified flow: straight paths from noise to image. The model predicts the direction, so the config's prediction type is ignored. */
function flowSampler({ trainSteps, shift }: SchedulerConfig, steps: number): Sampler {
  const moved = (part: number): number => (shift * part) / (1 + (shift - 1) * part);
  const sigmas = [...Array.from({ length: steps }, (_, index) => moved(1 - index / steps)), 0];
  return {
    timesteps: sigmas.slice(0, -1).map((sigma) => sigma * trainSteps),
    firstScale: 1,
    inputScale: () => 1,
    advance: (step, latent, prediction) => {
      const change = (sigmas[step + 1] as number) - (sigmas[step] as number);
      for (let i = 0; i < latent.length; i++) latent[i] = (latent[i] as number) + change * (prediction[i] as number);
    },
  };
}

function interpolate(values: readonly number[], at: number): number {
  const low = Math.floor(at);
  const below = values[low] as number;
  const above = values[Math.min(values.length - 1, low + 1)] as number;
  return below + (above - below) * (at - low);
}
