/** The numbers of drawing, without a model: schedules, samplers, noise and the prompt's tokens. */
import { describe, expect, test } from 'vitest';
import { ClipTokenizer } from '../../src/imaging/process/onnx/clip-tokenizer.js';
import { fromHalf, toHalf } from '../../src/imaging/process/onnx/half-float.js';
import { Noise } from '../../src/imaging/process/onnx/noise.js';
import { alphasOf, timestepsOf } from '../../src/imaging/process/onnx/noise-schedule.js';
import { samplerOf } from '../../src/imaging/process/onnx/sampler.js';
import type { SchedulerConfig } from '../../src/models/image/scheduler-config.js';

const config: SchedulerConfig = {
  kind: 'euler',
  trainSteps: 1000,
  betaStart: 0.00085,
  betaEnd: 0.012,
  betaSchedule: 'scaled_linear',
  betas: null,
  prediction: 'epsilon',
  spacing: 'linspace',
  stepsOffset: 0,
  endsClean: true,
  clip: null,
  zeroTerminalSnr: false,
  shift: 1,
};

describe('schedules', () => {
  test("Stable Diffusion's noise reaches from 0.0292 to 14.6146", () => {
    const alphas = alphasOf(config);
    const sigma = (alpha: number) => Math.sqrt((1 - alpha) / alpha);
    expect(alphas).toHaveLength(1000);
    expect(sigma(alphas[0] as number)).toBeCloseTo(0.0292, 4);
    expect(sigma(alphas[999] as number)).toBeCloseTo(14.6146, 4);
  });

  test.each<[Partial<SchedulerConfig>, number, readonly number[]]>([
    [{ spacing: 'linspace' }, 5, [999, 749.25, 499.5, 249.75, 0]],
    [{ spacing: 'linspace' }, 1, [999]],
    [{ spacing: 'leading' }, 4, [750, 500, 250, 0]],
    [{ spacing: 'leading', stepsOffset: 1 }, 4, [751, 501, 251, 1]],
    [{ spacing: 'trailing' }, 4, [999, 749, 499, 249]],
  ])('%o in %i steps', (changes, steps, expected) => {
    expect(timestepsOf({ ...config, ...changes }, steps)).toEqual(expected);
  });

  test('a zero-terminal-SNR schedule ends without signal', () => {
    const alphas = alphasOf({ ...config, zeroTerminalSnr: true });
    expect(alphas[0]).toBeCloseTo(alphasOf(config)[0] as number, 12);
    expect(alphas[999]).toBeLessThan(1e-6);
    expect([...alphas].every((alpha, index) => index === 0 || alpha < (alphas[index - 1] as number))).toBe(true);
  });

  test('the cosine schedule falls from nearly all signal to nearly none', () => {
    const alphas = alphasOf({ ...config, betaSchedule: 'squaredcos_cap_v2' });
    expect(alphas[0]).toBeGreaterThan(0.999);
    expect(alphas[999]).toBeLessThan(1e-5);
  });
});

describe('samplers', () => {
  const MEAN = 0.7;
  const SPREAD = 0.3;

  /** The optimal prediction where images are single numbers of a normal distribution. */
  function best({ kind, prediction }: SchedulerConfig, x: number, signal: number, noise: number): number {
    const weight = (signal * SPREAD ** 2) / (signal ** 2 * SPREAD ** 2 + noise ** 2);
    const clean = MEAN + weight * (x - signal * MEAN);
    const said = (x - signal * clean) / noise;
    if (kind === 'flow_euler') return said - clean;
    if (prediction === 'sample') return clean;
    return prediction === 'epsilon' ? said : signal * said - noise * clean;
  }

  function draw(changes: Partial<SchedulerConfig>, steps: number): { mean: number; spread: number } {
    const chosen = { ...config, ...changes };
    const sampler = samplerOf(chosen, steps);
    const noise = new Noise('samplers');
    const latent = noise.fill(new Float32Array(2000), sampler.firstScale);
    const alphas = alphasOf(chosen);
    for (let step = 0; step < steps; step++) {
      const timestep = sampler.timesteps[step] as number;
      const low = alphas[Math.floor(timestep)] as number;
      const high = alphas[Math.min(999, Math.floor(timestep) + 1)] as number;
      const isEuler = chosen.kind.startsWith('euler');
      // Euler interpolates the noise between timesteps, not the signal.
      const sigma = (alpha: number) => Math.sqrt((1 - alpha) / alpha);
      const between = sigma(low) + (sigma(high) - sigma(low)) * (timestep - Math.floor(timestep));
      const alpha = isEuler ? 1 / (between ** 2 + 1) : low;
      const [signal, spread] =
        chosen.kind === 'flow_euler' ? [1 - timestep / 1000, timestep / 1000] : [Math.sqrt(alpha), Math.sqrt(1 - alpha)];
      const shown = latent.map((value) => value * sampler.inputScale(step));
      sampler.advance(
        step,
        latent,
        shown.map((value) => best(chosen, value, signal as number, spread as number)),
        noise,
      );
    }
    const mean = latent.reduce((sum, value) => sum + value, 0) / latent.length;
    return { mean, spread: Math.sqrt(latent.reduce((sum, value) => sum + (value - mean) ** 2, 0) / latent.length) };
  }

  const kinds = ['euler', 'euler_ancestral', 'ddim', 'ddpm', 'flow_euler'] as const;
  const predictions = ['epsilon', 'v_prediction', 'sample'] as const;
  test.each(kinds.flatMap((kind) => predictions.map((prediction) => [kind, prediction] as const)))(
    '%s with a model that tells %s ends at the distribution it was trained on',
    (kind, prediction) => {
      for (const spacing of ['linspace', 'leading', 'trailing'] as const) {
        const { mean, spread } = draw({ kind, prediction, spacing }, 200);
        expect(mean).toBeCloseTo(MEAN, 1);
        expect(Math.abs(spread - SPREAD)).toBeLessThan(0.03);
      }
    },
  );

  test('clean images are clipped where the config says so', () => {
    const { mean, spread } = draw({ kind: 'ddim', clip: 0.5 }, 50);
    expect(mean).toBeLessThan(0.51);
    expect(spread).toBeLessThan(SPREAD);
  });

  test('one step is enough to end', () => {
    for (const kind of kinds) expect(Number.isFinite(draw({ kind }, 1).mean)).toBe(true);
  });
});

describe('noise', () => {
  const of = (seed: string, count = 20_000) => [...new Noise(seed).fill(new Float32Array(count), 1)];

  test('is normal: mean, spread and tails', () => {
    const values = of('1');
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    expect(Math.abs(mean)).toBeLessThan(0.03);
    expect(Math.sqrt(values.reduce((sum, value) => sum + value ** 2, 0) / values.length)).toBeCloseTo(1, 1);
    const beyond = values.filter((value) => Math.abs(value) > 1.96).length / values.length;
    expect(Math.abs(beyond - 0.05)).toBeLessThan(0.01);
  });

  test('is equal for equal seeds and different for different seeds', () => {
    expect(of('7', 10)).toEqual(of('7', 10));
    const firsts = ['7', '8', '-7', '9007199254740993', '9007199254740992'].map((seed) => of(seed, 1)[0]);
    expect(new Set(firsts).size).toBe(5);
  });

  test('does not change between versions of this program', () => {
    expect(of('42', 3).map((value) => value.toFixed(6))).toMatchInlineSnapshot(`
      [
        "0.145602",
        "0.068861",
        "0.006939",
      ]
    `);
  });
});

describe('tokens of a prompt', () => {
  const words = ['a</w>', 'r', 'e', 'd</w>', 're', 'red</w>', '!', ',</w>', 'Ã', '¤</w>', '<|startoftext|>', '<|endoftext|>'];
  const ids = new Map(words.map((word, id) => [word, id]));
  const [begin, end] = [10, 11];
  const tokenizer = new ClipTokenizer({ ids, merges: ['r e', 're d</w>'], begin, end, padding: 6, length: 8 });

  test.each([
    ['a red', [begin, 0, 5, end, 6, 6, 6, 6], 4],
    ['  A\n\tRED , ', [begin, 0, 5, 7, end, 6, 6, 6], 5],
    // Letters that the vocabulary spells in bytes.
    ['ä', [begin, 8, 9, end, 6, 6, 6, 6], 4],
    ['a a a a a a a a a', [begin, 0, 0, 0, 0, 0, 0, end], 8],
    ['', [begin, end, 6, 6, 6, 6, 6, 6], 2],
  ])('%j', (text, expected, used) => {
    expect(tokenizer.tokenize(text)).toEqual({ ids: expected, used });
  });

  test('an endless word is truncated like a long one', () => {
    expect(tokenizer.tokenize('re'.repeat(16_000)).ids).toHaveLength(8);
  });
});

describe('half precision', () => {
  // IEEE 754-2019, binary16.
  test.each([
    [0, 0x0000],
    [1, 0x3c00],
    [-2, 0xc000],
    [65504, 0x7bff],
    [65536, 0x7c00],
    [2 ** -14, 0x0400],
    [2 ** -24, 0x0001],
    [2 ** -26, 0x0000],
    [1 / 3, 0x3555],
    [1 + 2 ** -11, 0x3c00],
    [1 + 3 * 2 ** -11, 0x3c02],
  ])('%d is %i', (value, expected) => {
    expect(toHalf(value)).toBe(expected);
  });

  test('every 16-bit number round-trips', () => {
    for (let bits = 0; bits < 0x7c00; bits++) expect(toHalf(fromHalf(bits))).toBe(bits);
    expect([toHalf(Number.NEGATIVE_INFINITY), fromHalf(0xfc00)]).toEqual([0xfc00, Number.NEGATIVE_INFINITY]);
    expect(fromHalf(toHalf(Number.NaN))).toBeNaN();
  });
});
