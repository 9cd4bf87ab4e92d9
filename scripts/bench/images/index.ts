/**
 * Bench of images: the CPU time that the coordinator's process spends on one image (all of it: request, reservation, sealing,
 * parts, hashes, decoding it to see that it is one, storing it encrypted, settlement, and one fetch from its URL), and what share
 * that is of the time in which the image is made. The provider answers at once, with an image made before, so that nothing else
 * is in the figures. Prints both sizes; false when one misses its target.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sharp from 'sharp';
import { ScriptedProvider } from '../../../apps/coordinator/test/scripted-provider.js';
import { type CoordinatorAlone, startCoordinatorAlone } from '../../network/network.js';
import { cpuSeconds, median } from '../statistics.js';

const ROUNDS = 3;
const TARGET_SHARE = 0.02;

interface Trial {
  readonly size: string;
  readonly images: number;
  /** In which a provider makes one such image. */
  readonly makingSeconds: number;
  readonly maker: string;
}

const TRIALS: readonly Trial[] = [
  { size: '256x256', images: 100, makingSeconds: 0.65, maker: 'the demo image model, sixteen steps on two CPU cores' },
  { size: '1024x1024', images: 12, makingSeconds: 5, maker: 'a quantised large model on a fast Mac' },
];

/** Runs the bench. Resolves to whether every target was met. */
export async function benchImages(): Promise<boolean> {
  const directory = mkdtempSync(join(tmpdir(), 'inference-bench-'));
  const coordinator = await startCoordinatorAlone(directory, { RATE_LIMIT_ADDRESS: '0', RATE_LIMIT_KEY: '0' });
  let met = true;
  try {
    for (const trial of TRIALS) met = (await run(coordinator, trial)) && met;
  } finally {
    await coordinator.child.stop();
    rmSync(directory, { recursive: true, force: true });
  }
  return met;
}

async function run(coordinator: CoordinatorAlone, trial: Trial): Promise<boolean> {
  const { size, images, makingSeconds, maker } = trial;
  const image = await likePhotograph(size);
  const model = `bench/${size}`;
  const provider = await ScriptedProvider.connect(coordinator.baseUrl, {
    models: [model],
    image: { sizes: [size], max_images: 1 },
    onJob: (job) => job.answerImages([image], { size }),
  });
  try {
    await generateAndFetch(coordinator, model);
    const cpu: number[] = [];
    const wall: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const [cpuBefore, wallBefore] = [cpuSeconds(coordinator.child.pid), performance.now()];
      for (let count = 0; count < images; count++) await generateAndFetch(coordinator, model);
      cpu.push((cpuSeconds(coordinator.child.pid) - cpuBefore) / images);
      wall.push((performance.now() - wallBefore) / 1000 / images);
    }
    const share = median(cpu) / makingSeconds;
    console.log(
      `${size} (${(image.length / 1024).toFixed(0)} KiB): ${(1000 * median(cpu)).toFixed(1)} ms of the coordinator's CPU per image, ` +
        `${median(wall).toFixed(3)} s from request to image here; ${(100 * share).toFixed(2)} % of ${makingSeconds} s (${maker}), ` +
        `target ${100 * TARGET_SHARE} %: ${share < TARGET_SHARE ? 'met' : 'MISSED'}`,
    );
    return share < TARGET_SHARE;
  } finally {
    provider.close();
  }
}

async function generateAndFetch({ baseUrl, apiKey }: CoordinatorAlone, model: string): Promise<void> {
  const response = await fetch(`${baseUrl}/v1/images/generations`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ prompt: 'a lighthouse at night', model }),
  });
  if (response.status !== 200) throw new Error(`the coordinator answered ${response.status}: ${await response.text()}`);
  const { data } = (await response.json()) as { data: { url: string }[] };
  const image = await fetch(data[0]?.url ?? '');
  if (image.status !== 200) throw new Error(`the image could not be fetched: ${image.status}`);
  await image.arrayBuffer();
}

/** A PNG about as large as one of a photograph: soft shapes under fine grain. */
async function likePhotograph(size: string): Promise<Uint8Array> {
  const [width = 0, height = 0] = size.split('x').map(Number);
  const soft = await sharp(randomBytes(8 * 8 * 3), { raw: { width: 8, height: 8, channels: 3 } })
    .resize(width, height, { kernel: 'cubic' })
    .raw()
    .toBuffer();
  const grain = randomBytes(soft.length);
  for (let at = 0; at < soft.length; at++) soft[at] = Math.min(255, (soft[at] as number) + ((grain[at] as number) & 7));
  return new Uint8Array(
    await sharp(soft, { raw: { width, height, channels: 3 } })
      .png()
      .toBuffer(),
  );
}
