/** `readSchedulerConfig` reads the sampling method and noise schedule of an image model (`scheduler_config.json` of diffusers). */
import Type from 'typebox';
import { ModelFileError } from '../gguf-header.js';
import { readJson } from './folder-file.js';

export interface SchedulerConfig {
  readonly kind: 'euler' | 'euler_ancestral' | 'ddim' | 'ddpm' | 'flow_euler';
  readonly trainSteps: number;
  /** Noise variance of the first training timestep. */
  readonly betaStart: number;
  readonly betaEnd: number;
  readonly betaSchedule: 'linear' | 'scaled_linear' | 'squaredcos_cap_v2';
  /** Betas in place of `betaStart`, `betaEnd` and `betaSchedule`, or null. */
  readonly betas: readonly number[] | null;
  /** Prediction of the model: noise, clean image, or velocity. */
  readonly prediction: 'epsilon' | 'sample' | 'v_prediction';
  /** How the visited timesteps are chosen from the trained ones. */
  readonly spacing: 'leading' | 'linspace' | 'trailing';
  readonly stepsOffset: number;
  /** Whether the final step removes all noise; otherwise that of the first timestep remains. */
  readonly endsClean: boolean;
  /** Predicted clean images are clipped to ±clip. Null: not clipped. */
  readonly clip: number | null;
  /** Whether the last timestep is made pure noise, regardless of the betas. */
  readonly zeroTerminalSnr: boolean;
  /** Shift of timesteps towards noise, for flow models. */
  readonly shift: number;
}

const ConfigSchema = Type.Object({
  _class_name: Type.String(),
  num_train_timesteps: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000 })),
  beta_start: Type.Optional(Type.Number({ exclusiveMinimum: 0, exclusiveMaximum: 1 })),
  beta_end: Type.Optional(Type.Number({ exclusiveMinimum: 0, exclusiveMaximum: 1 })),
  beta_schedule: Type.Optional(Type.Enum(['linear', 'scaled_linear', 'squaredcos_cap_v2'])),
  trained_betas: Type.Optional(
    Type.Union([Type.Array(Type.Number({ minimum: 0, exclusiveMaximum: 1 }), { minItems: 1, maxItems: 100_000 }), Type.Null()]),
  ),
  prediction_type: Type.Optional(Type.Enum(['epsilon', 'sample', 'v_prediction'])),
  timestep_spacing: Type.Optional(Type.Enum(['leading', 'linspace', 'trailing'])),
  steps_offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 1000 })),
  set_alpha_to_one: Type.Optional(Type.Boolean()),
  clip_sample: Type.Optional(Type.Boolean()),
  clip_sample_range: Type.Optional(Type.Number({ exclusiveMinimum: 0 })),
  rescale_betas_zero_snr: Type.Optional(Type.Boolean()),
  shift: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 1000 })),
});

interface Method {
  readonly kind: SchedulerConfig['kind'];
  /** Default if the config has no value. */
  readonly spacing: SchedulerConfig['spacing'];
}

/** Methods by class name of diffusers. Methods that differ from Euler's only in accuracy are replaced by Euler's. */
const METHODS: Readonly<Record<string, Method>> = {
  EulerDiscreteScheduler: { kind: 'euler', spacing: 'linspace' },
  EulerAncestralDiscreteScheduler: { kind: 'euler_ancestral', spacing: 'linspace' },
  HeunDiscreteScheduler: { kind: 'euler', spacing: 'linspace' },
  LMSDiscreteScheduler: { kind: 'euler', spacing: 'linspace' },
  DPMSolverMultistepScheduler: { kind: 'euler', spacing: 'linspace' },
  DPMSolverSinglestepScheduler: { kind: 'euler', spacing: 'linspace' },
  UniPCMultistepScheduler: { kind: 'euler', spacing: 'linspace' },
  PNDMScheduler: { kind: 'euler', spacing: 'leading' },
  DDIMScheduler: { kind: 'ddim', spacing: 'leading' },
  DDPMScheduler: { kind: 'ddpm', spacing: 'leading' },
  FlowMatchEulerDiscreteScheduler: { kind: 'flow_euler', spacing: 'linspace' },
};

/** Throws {@link ModelFileError}. */
export function readSchedulerConfig(path: string): SchedulerConfig {
  const config = readJson(path, ConfigSchema);
  const name = config._class_name;
  const method = Object.hasOwn(METHODS, name) ? METHODS[name] : undefined;
  if (method === undefined)
    throw new ModelFileError(`the file ${path} names a scheduler that is not supported; known are ${Object.keys(METHODS).join(', ')}`);
  const betas = config.trained_betas ?? null;
  const clips = method.kind === 'ddim' || method.kind === 'ddpm' ? (config.clip_sample ?? true) : false;
  return {
    ...method,
    trainSteps: betas?.length ?? config.num_train_timesteps ?? 1000,
    betaStart: config.beta_start ?? 0.0001,
    betaEnd: config.beta_end ?? 0.02,
    betaSchedule: config.beta_schedule ?? 'linear',
    betas,
    prediction: config.prediction_type ?? 'epsilon',
    spacing: config.timestep_spacing ?? method.spacing,
    stepsOffset: config.steps_offset ?? 0,
    endsClean: config.set_alpha_to_one ?? true,
    clip: clips ? (config.clip_sample_range ?? 1) : null,
    zeroTerminalSnr: config.rescale_betas_zero_snr ?? false,
    shift: config.shift ?? 1,
  };
}
