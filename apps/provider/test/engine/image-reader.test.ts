/** The images of waiting requests take a bounded amount of native memory per cache scope, which stands for an account. */
import type { Token } from 'node-llama-cpp';
import sharp from 'sharp';
import { beforeAll, describe, expect, test } from 'vitest';
import type { PromptInput } from '../../src/engine/messages.js';
import { StreamControl } from '../../src/engine/process/output/text-stream.js';
import { ImageReader } from '../../src/engine/vision/image-reader.js';
import { conversation } from '../demo-model.js';

const CONTEXT = 100;
const IMAGE_TOKENS = 40;

let file: Buffer;
beforeAll(async () => {
  file = await sharp({ create: { width: 4, height: 4, channels: 3, background: 'red' } })
    .png()
    .toBuffer();
});

function promptWith(images: number): PromptInput {
  const content = Array.from({ length: images }, (_, index) => ({ type: 'image', data: file, field: `image ${index}` }) as const);
  return conversation([{ role: 'user', content }]);
}

/** A reader whose projector counts the images that hold native memory. */
function readerOf({ imageTokens = IMAGE_TOKENS } = {}) {
  const memory = { images: 0 };
  const prepare = async () => {
    memory.images++;
    return { tokens: Array.from({ length: imageTokens }, () => -1 as Token), chunks: [], free: () => void memory.images-- };
  };
  return { memory, reader: new ImageReader({ prepare }, IMAGE_TOKENS, CONTEXT) };
}

const none = new StreamControl(0);

describe('a request whose images do not fit beside those of its scope', () => {
  test('waits until they are freed, and delays no other scope', async () => {
    const { memory, reader } = readerOf();
    const first = await reader.prepare(promptWith(2), { scope: 'a', control: none });
    const second = reader.prepare(promptWith(1), { scope: 'a', control: none });
    (await reader.prepare(promptWith(2), { scope: 'b', control: none })).free();
    expect(memory.images).toBe(2);
    first.free();
    expect((await second).images).toHaveLength(1);
    expect(memory.images).toBe(1);
  });

  test('goes ahead once they turn out smaller than the bound of an image', async () => {
    const { reader } = readerOf({ imageTokens: IMAGE_TOKENS / 4 });
    await reader.prepare(promptWith(2), { scope: null, control: none });
    expect((await reader.prepare(promptWith(2), { scope: null, control: none })).images).toHaveLength(2);
  });

  test('is prepared after the one before it failed or was cancelled', async () => {
    const { memory, reader } = readerOf();
    await expect(reader.prepare(promptWith(3), { scope: 'a', control: none })).rejects.toThrow('too long');
    const first = await reader.prepare(promptWith(2), { scope: 'a', control: none });
    const control = new StreamControl(1);
    const cancelled = reader.prepare(promptWith(2), { scope: 'a', control });
    const third = reader.prepare(promptWith(1), { scope: 'a', control: none });
    control.cancel();
    expect((await cancelled).images).toEqual([]);
    first.free();
    expect((await third).images).toHaveLength(1);
    expect(memory.images).toBe(1);
  });
});
