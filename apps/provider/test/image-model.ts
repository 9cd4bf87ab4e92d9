/** Image models of random weights, and engines on them, for the tests that really draw. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TinyDiffusion, writeTinyDiffusion } from '../../../scripts/fixtures/onnx/tiny-diffusion.js';
import { ImageEngine, type ImageEngineOptions } from '../src/imaging/image-engine.js';
import type { ImageRequest, ImageSettings } from '../src/imaging/messages.js';

/** A folder of its own with such a model; `remove` takes it away. */
export function tinyImageModel(options: TinyDiffusion = {}): { readonly folder: string; remove(): void } {
  const directory = mkdtempSync(join(tmpdir(), 'image-model-'));
  const folder = join(directory, 'tiny');
  writeTinyDiffusion(folder, options);
  return { folder, remove: () => rmSync(directory, { recursive: true, force: true }) };
}

export function startImageEngine(
  modelPath: string,
  settings: Partial<ImageSettings> = {},
  options: Partial<ImageEngineOptions> = {},
): Promise<ImageEngine> {
  return ImageEngine.start({
    ...options,
    settings: { engine: 'onnx', modelPath, gpu: 'none', memoryLimit: null, addOnPath: null, ...settings },
  });
}

export function picture(changes: Partial<ImageRequest> = {}): ImageRequest {
  return {
    prompt: 'a red square',
    size: { width: 64, height: 64 },
    count: 1,
    seed: 1,
    steps: 3,
    guidance: 3,
    encoding: 'png',
    quality: null,
    ...changes,
  };
}
