/** Quantized image models that `models pull` can set up for stable-diffusion.cpp, with the repositories of their other parts. */
import type { Description } from './stable-diffusion-folder.js';

interface Companion {
  readonly repository: string;
  readonly path: string;
}

export interface KnownModel extends Omit<Description, 'engine' | 'quantization' | 'files'> {
  /** Repository with the model in several quantizations, as GGUF. */
  readonly repository: string;
  /** Text encoders and decoders, by part name, from other repositories. */
  readonly companions: Readonly<Partial<Record<Exclude<keyof Description['files'], 'model'>, Companion>>>;
}

const SQUARE_FIRST = ['1024x1024', '512x512', '768x768', '1216x832', '832x1216', '1344x768', '768x1344'];

const KNOWN_MODELS: readonly KnownModel[] = [
  {
    repository: 'leejet/Z-Image-Turbo-GGUF',
    name: 'Z-Image Turbo',
    companions: {
      llm: { repository: 'unsloth/Qwen3-4B-Instruct-2507-GGUF', path: 'Qwen3-4B-Instruct-2507-Q4_K_M.gguf' },
      vae: { repository: 'Comfy-Org/z_image_turbo', path: 'split_files/vae/ae.safetensors' },
    },
    prompt_tokens: 512,
    num_inference_steps: 8,
    guidance_scale: 1,
    sizes: SQUARE_FIRST,
    config: { diffusion_fa: true },
  },
];

export function knownModel(repository: string): KnownModel | null {
  return KNOWN_MODELS.find((model) => model.repository.toLowerCase() === repository.toLowerCase()) ?? null;
}
