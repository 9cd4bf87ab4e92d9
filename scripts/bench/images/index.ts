/** Image bench: time and coordinator CPU time per image of the demo model, then coordinator CPU time to relay a large image. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sharp from 'sharp';
import { ScriptedProvider } from '../../../apps/coordinator/test/support/scripted-provider.js';
import { startCoordinatorAlone, startNetwork } from '../../network/network.js';
import { sized } from '../size.js';
import { cpuSeconds, median } from '../statistics.js';

const ROUNDS = sized(3, 1);
/** Maximum CPU time of the coordinator, as a share of the time that an image takes. */
const TARGET_SHARE = 0.02;
const NO_RATE_LIMITS = { RATE_LIMIT_ADDRESS: '0', RATE_LIMIT_KEY: '0' };
const SIZE = '256x256';
const IMAGES = sized(40, 1);
const LARGE_SIZE = '1024x1024';
const LARGE_IMAGES = sized(12, 1);

interface Gateway {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly pid: number;
}

/** Resolves to whether the demo model's images met the target. Large images have none. */
export async function benchImages(): Promise<boolean> {
  const directory = mkdtempSync(join(tmpdir(), 'inference-bench-'));
  try {
    const met = await benchDemoModel(join(directory, 'network'));
    await benchLargeImages(join(directory, 'coordinator'));
    return met;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function benchDemoModel(dataDir: string): Promise<boolean> {
  const providerArgs = ['--model', 'demo-text', '--model', 'demo-image'];
  const network = await startNetwork({
    port: 0,
    providers: 1,
    dataDir,
    providerArgs,
    coordinatorEnv: { LOG_LEVEL: 'warn', ...NO_RATE_LIMITS },
  });
  try {
    const [model] = network.imageModels;
    if (model === undefined) throw new Error('nobody serves the demo image model');
    const gateway = { baseUrl: network.baseUrl, apiKey: network.apiKey, pid: network.coordinator.current.pid };
    const { cpu, wall } = await perImage(gateway, { model, size: SIZE, images: IMAGES });
    const share = cpu / wall;
    console.log(
      `${SIZE}, demo image model: ${wall.toFixed(3)} s per image from request to image, ${(1000 * cpu).toFixed(1)} ms of the ` +
        `coordinator's CPU, share ${(100 * share).toFixed(2)} % (target ${100 * TARGET_SHARE} %): ${share < TARGET_SHARE ? 'met' : 'MISSED'}`,
    );
    return share < TARGET_SHARE;
  } finally {
    await network.stop();
  }
}

async function benchLargeImages(dataDir: string): Promise<void> {
  const { baseUrl, apiKey, child } = await startCoordinatorAlone(dataDir, NO_RATE_LIMITS);
  const image = await likePhotograph(LARGE_SIZE);
  const provider = await ScriptedProvider.connect(baseUrl, {
    models: ['bench/large'],
    image: { sizes: [LARGE_SIZE], max_images: 1 },
    onJob: (job) => job.answerImages([image], { size: LARGE_SIZE }),
  });
  try {
    const gateway = { baseUrl, apiKey, pid: child.pid };
    const { cpu } = await perImage(gateway, { model: 'bench/large', size: LARGE_SIZE, images: LARGE_IMAGES });
    console.log(
      `${LARGE_SIZE} (${(image.length / 1024).toFixed(0)} KiB), made at once: ${(1000 * cpu).toFixed(1)} ms of the coordinator's CPU; ` +
        `${(cpu / TARGET_SHARE).toFixed(1)} s of making such an image make that ${100 * TARGET_SHARE} %`,
    );
  } finally {
    provider.close();
    await child.stop();
  }
}

/** Median seconds per image: processor time of the coordinator, and time from request to downloaded image. */
async function perImage(
  gateway: Gateway,
  { model, size, images }: { readonly model: string; readonly size: string; readonly images: number },
): Promise<{ readonly cpu: number; readonly wall: number }> {
  for (let count = 0; count < 3; count++) await generateAndFetch(gateway, { model, size });
  const cpu: number[] = [];
  const wall: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const [cpuBefore, wallBefore] = [cpuSeconds(gateway.pid), performance.now()];
    for (let count = 0; count < images; count++) await generateAndFetch(gateway, { model, size });
    cpu.push((cpuSeconds(gateway.pid) - cpuBefore) / images);
    wall.push((performance.now() - wallBefore) / 1000 / images);
  }
  return { cpu: median(cpu), wall: median(wall) };
}

async function generateAndFetch({ baseUrl, apiKey }: Gateway, asked: { readonly model: string; readonly size: string }): Promise<void> {
  const response = await fetch(`${baseUrl}/v1/images/generations`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ prompt: 'a red circle on a blue background', ...asked }),
  });
  if (response.status !== 200) throw new Error(`the coordinator answered ${response.status}: ${await response.text()}`);
  const { data } = (await response.json()) as { data: { url: string }[] };
  const image = await fetch(data[0]?.url ?? '');
  if (image.status !== 200) throw new Error(`the image could not be fetched: ${image.status}`);
  await image.arrayBuffer();
}

/** A PNG of about a photograph's file size: soft shapes with fine grain. */
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
