/**
 * `readStableDiffusionFolder` reads an image model for stable-diffusion.cpp: a folder with weights, and with a description in this
 * project's own format, `image-model.json`. `models pull` writes the description for known models.
 */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { MAX_IMAGE_PIXELS } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { ModelFileError } from '../gguf-header.js';
import { hasFile, readJson } from './folder-file.js';
import type { ImageFacts, ImageSize } from './image-facts.js';

interface StableDiffusionModel {
  readonly name: string;
  readonly quantization: string;
  readonly promptTokens: number;
  readonly facts: ImageFacts;
  /** Path by part name. */
  readonly files: Readonly<Record<string, string>>;
  /** Options of stable-diffusion.cpp, by its names. */
  readonly config: Readonly<Record<string, string | number | boolean>>;
  /** All files, the description first. */
  readonly paths: readonly string[];
  readonly bytes: number;
}

export const DESCRIPTION_FILE = 'image-model.json';

const FileName = Type.String({ pattern: '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,255}$' });
const DescriptionSchema = Type.Object({
  engine: Type.Literal('stable-diffusion.cpp'),
  name: Type.String({ minLength: 1, maxLength: 128 }),
  quantization: Type.String({ minLength: 1, maxLength: 32 }),
  files: Type.Object({
    model: FileName,
    vae: Type.Optional(FileName),
    llm: Type.Optional(FileName),
    clipL: Type.Optional(FileName),
    clipG: Type.Optional(FileName),
    t5Xxl: Type.Optional(FileName),
  }),
  /** Prompt tokens that the text encoder reads. */
  prompt_tokens: Type.Integer({ minimum: 1, maximum: 1 << 20 }),
  num_inference_steps: Type.Integer({ minimum: 1, maximum: 1000 }),
  guidance_scale: Type.Number({ minimum: 0, maximum: 100 }),
  sizes: Type.Array(Type.String({ pattern: '^[1-9][0-9]{1,3}x[1-9][0-9]{1,3}$' }), { minItems: 1, maxItems: 64 }),
  /** Engine options, such as the prediction type. */
  config: Type.Optional(
    Type.Object({
      prediction: Type.Optional(Type.Enum(['auto', 'eps', 'v', 'edm_v', 'flow', 'flux2_flow'])),
      flow_shift: Type.Optional(Type.Number({ minimum: 0, maximum: 100 })),
      diffusion_fa: Type.Optional(Type.Boolean()),
      vae_tiling: Type.Optional(Type.Boolean()),
    }),
  ),
});
export type Description = Static<typeof DescriptionSchema>;

/** Image pixels per latent pixel; the engine accepts only multiples. */
const SCALE = 8;

export function isStableDiffusionFolder(path: string): boolean {
  return hasFile(join(path, DESCRIPTION_FILE));
}

/** Throws {@link ModelFileError}. */
export function readStableDiffusionFolder(folder: string): StableDiffusionModel {
  const description = readJson(join(folder, DESCRIPTION_FILE), DescriptionSchema);
  const files = Object.fromEntries(
    Object.entries(description.files).flatMap(([part, name]) => (name === undefined ? [] : [[part, join(folder, name)]])),
  );
  const paths = [join(folder, DESCRIPTION_FILE), ...Object.values(files)];
  let bytes = 0;
  for (const path of paths) {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat?.isFile() !== true) throw new ModelFileError(`the model needs the file ${path}, which is missing`);
    bytes += stat.size;
  }
  const sizes = description.sizes
    .map((text): ImageSize => {
      const [width = 0, height = 0] = text.split('x').map(Number);
      return { width, height };
    })
    .filter(({ width, height }) => width % SCALE === 0 && height % SCALE === 0 && width * height <= MAX_IMAGE_PIXELS);
  if (sizes.length === 0) throw new ModelFileError(`the model ${folder} lists no image size that is supported`);
  return {
    name: description.name,
    quantization: description.quantization,
    promptTokens: description.prompt_tokens,
    facts: {
      engine: 'stable-diffusion.cpp',
      sizes,
      steps: description.num_inference_steps,
      guidance: description.guidance_scale,
      scale: SCALE,
    },
    files,
    config: description.config ?? {},
    paths,
    bytes,
  };
}
