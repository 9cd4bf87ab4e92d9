/** Small real images for tests, and a coordinator with a scripted provider that generates them. */
import OpenAI from 'openai';
import sharp from 'sharp';
import { type Harness, startHarness } from '../support/harness.js';
import { IMAGE_SIZES, type ProviderOptions, type ScriptedJob, type ScriptedProvider } from '../support/scripted-provider.js';

export const IMAGE_MODEL = 'test/image-1';
export const [OWN_SIZE, SMALL_SIZE] = IMAGE_SIZES;

/** A single-colour image. */
export async function picture(
  size: string = OWN_SIZE,
  format: 'png' | 'jpeg' | 'webp' | 'gif' = 'png',
  background = '#c03020',
): Promise<Uint8Array> {
  const [width = 0, height = 0] = size.split('x').map(Number);
  return new Uint8Array(
    await sharp({ create: { width, height, channels: 3, background } })
      .toFormat(format)
      .toBuffer(),
  );
}

export function startImageHarness(options: Parameters<typeof startHarness>[0] = {}): Promise<Harness> {
  return startHarness(options);
}

/** Generates the requested images. */
export async function paint(job: ScriptedJob): Promise<void> {
  const request = job.parsedImages?.request;
  if (request === undefined) throw new Error('no image request');
  const size = request.size === null || request.size === 'auto' ? OWN_SIZE : request.size;
  const images = await Promise.all(
    Array.from({ length: request.count }, (_, index) => picture(size, request.format, `#0000${(16 + index).toString(16)}`)),
  );
  await job.answerImages(images, { size });
}

export function imageProvider(harness: Harness, options: ProviderOptions = {}): Promise<ScriptedProvider> {
  return harness.provider({ models: [IMAGE_MODEL], image: { sizes: [...IMAGE_SIZES], max_images: 4 }, onJob: paint, ...options });
}

/** POST /v1/images/generations. */
export function generate(harness: Harness, body: Record<string, unknown> = {}): Promise<Response> {
  return harness.post('/v1/images/generations', { prompt: 'a red square', model: IMAGE_MODEL, ...body });
}

/** The unmodified client SDK, without retries. */
export function sdk(harness: Harness): OpenAI {
  return new OpenAI({ baseURL: `${harness.url}/v1`, apiKey: harness.apiKey, maxRetries: 0 });
}

export async function urlsOf(response: Response): Promise<string[]> {
  const { data } = (await response.json()) as { data: { url: string }[] };
  return data.map(({ url }) => url);
}
