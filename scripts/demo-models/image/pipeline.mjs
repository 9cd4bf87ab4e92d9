/** Runs the demo image model with onnxruntime alone, so that scripts can draw without the agent's image backend. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ort from 'onnxruntime-node';

const MARK = '</w>';

/** @param {string} folder @param {number} threads */
export async function load(folder, threads = 1) {
  const json = (path) => JSON.parse(readFileSync(join(folder, path), 'utf8'));
  const session = (part) => ort.InferenceSession.create(join(folder, part, 'model.onnx'), { intraOpNumThreads: threads });
  const merges = readFileSync(join(folder, 'tokenizer/merges.txt'), 'utf8').split('\n').slice(1);
  return {
    encoder: await session('text_encoder'),
    unet: await session('unet'),
    decoder: await session('vae_decoder'),
    vocabulary: json('tokenizer/vocab.json'),
    ranks: new Map(merges.map((pair, rank) => [pair, rank])),
    length: json('tokenizer/tokenizer_config.json').model_max_length,
    alphas: cumulativeAlphas(json('scheduler/scheduler_config.json')),
    scaling: json('vae_decoder/config.json').scaling_factor,
    ...json('model_index.json')._inference,
  };
}

/** Share of the signal's variance that remains after each diffusion step (DDPM: ᾱ). */
function cumulativeAlphas({ num_train_timesteps, beta_start, beta_end }) {
  let kept = 1;
  return Array.from({ length: num_train_timesteps }, (_, index) => {
    kept *= 1 - beta_start - ((beta_end - beta_start) * index) / (num_train_timesteps - 1);
    return kept;
  });
}

/** For English prompts: letters outside ASCII are dropped. */
function tokenize({ vocabulary, ranks, length }, prompt) {
  const ids = [vocabulary['<|startoftext|>']];
  for (const [word] of prompt.toLowerCase().matchAll(/'s|'t|'re|'ve|'m|'ll|'d|[a-z]+|[0-9]|[!-/:-@[-`{-~]+/g)) {
    const pieces = [...word];
    pieces.push(pieces.pop() + MARK);
    for (;;) {
      const ranked = pieces.slice(1).map((piece, index) => ranks.get(`${pieces[index]} ${piece}`) ?? Number.POSITIVE_INFINITY);
      const best = Math.min(...ranked);
      if (!Number.isFinite(best)) break;
      const at = ranked.indexOf(best);
      pieces.splice(at, 2, pieces[at] + pieces[at + 1]);
    }
    ids.push(...pieces.map((piece) => vocabulary[piece]));
  }
  const end = vocabulary['<|endoftext|>'];
  return [...ids.slice(0, length - 1), ...new Array(length).fill(end)].slice(0, length);
}

/** Seeded normal distribution (mulberry32, Box-Muller). */
function gaussian(seed) {
  let state = seed >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return () => Math.sqrt(-2 * Math.log(uniform() + 1e-12)) * Math.cos(2 * Math.PI * uniform());
}

/** Draws a picture: `rgb` has red, green and blue of each pixel, row by row. */
export async function draw(
  model,
  prompt,
  { width = 256, height = 256, seed = 0, steps = model.num_inference_steps, guidance = model.guidance_scale } = {},
) {
  const ids = Int32Array.from([...tokenize(model, ''), ...tokenize(model, prompt)]);
  const { last_hidden_state: states } = await model.encoder.run({ input_ids: new ort.Tensor('int32', ids, [2, model.length]) });
  const shape = [3, height / 8, width / 8];
  const size = shape.reduce((a, b) => a * b);
  const next = gaussian(seed);
  const latent = Float32Array.from({ length: size }, next);
  for (let step = 0; step < steps; step++) {
    const time = Math.round((model.alphas.length - 1) * (1 - step / (steps - 1)));
    const following = Math.round((model.alphas.length - 1) * (1 - (step + 1) / (steps - 1)));
    const both = Float32Array.from({ length: 2 * size }, (_, index) => latent[index % size]);
    const { out_sample: prediction } = await model.unet.run({
      sample: new ort.Tensor('float32', both, [2, ...shape]),
      timestep: new ort.Tensor('int64', BigInt64Array.of(BigInt(time), BigInt(time)), [2]),
      encoder_hidden_states: states,
    });
    const [signal, spread] = [Math.sqrt(model.alphas[time]), Math.sqrt(1 - model.alphas[time])];
    const [nextSignal, nextSpread] = step + 1 < steps ? [Math.sqrt(model.alphas[following]), Math.sqrt(1 - model.alphas[following])] : [1, 0];
    for (let index = 0; index < size; index++) {
      const clean = prediction.data[index] + guidance * (prediction.data[size + index] - prediction.data[index]);
      latent[index] = nextSignal * clean + (nextSpread * (latent[index] - signal * clean)) / spread;
    }
  }
  const { sample } = await model.decoder.run({
    latent_sample: new ort.Tensor(
      'float32',
      latent.map((value) => value / model.scaling),
      [1, ...shape],
    ),
  });
  const pixels = width * height;
  const rgb = new Uint8Array(3 * pixels);
  for (let pixel = 0; pixel < pixels; pixel++) {
    for (let part = 0; part < 3; part++)
      rgb[3 * pixel + part] = Math.max(0, Math.min(255, Math.round(127.5 * (sample.data[part * pixels + pixel] + 1))));
  }
  return { width, height, rgb };
}
