/**
 * `StableDiffusionCppBackend` runs quantized image models with the add-on stable-diffusion.cpp, in a worker process of its own.
 *
 * If the worker ends, the image process ends too, and the daemon restarts it.
 */
import { readStableDiffusionFolder } from '../../../models/image/stable-diffusion-folder.js';
import type { ImageEngineFacts, ImageSettings } from '../../messages.js';
import type { ImageBackend, RawImage, SingleImageRequest } from '../image-backend.js';
import { decodeImage } from '../image-codec.js';
import { type WorkerEvent, WorkerProcess } from './worker-process.js';

export class StableDiffusionCppBackend implements ImageBackend {
  readonly facts: ImageEngineFacts;

  private constructor(
    private readonly worker: WorkerProcess,
    device: string,
  ) {
    this.facts = { device };
  }

  /** Throws an Error whose message is meant for the Mac's owner. */
  static async load({ modelPath, gpu, addOnPath, memoryLimit }: ImageSettings): Promise<StableDiffusionCppBackend> {
    if (addOnPath === null) throw new Error('the engine stable-diffusion.cpp is not installed; models pull of such a model installs it');
    const { files, config } = readStableDiffusionFolder(modelPath);
    const device = gpu === 'auto' ? 'gpu' : 'cpu';
    const worker = new WorkerProcess(addOnPath, memoryLimit);
    const ended = new Promise<never>((_, reject) => {
      worker.onEnd = () => reject(new Error('the engine stable-diffusion.cpp ended while it loaded the model'));
    });
    const loaded = new Promise<void>((resolve, reject) => {
      worker.onMessage = (event) => {
        if (event.type === 'loaded') resolve();
        else if (event.type === 'failed') reject(new Error(`stable-diffusion.cpp cannot load the model: ${event.message}`));
      };
    });
    // On a CPU one thread, because two threads that share a core are slower than one. For a GPU, the engine chooses.
    const threads = device === 'cpu' ? { threads: 1 } : {};
    worker.send({ type: 'load', files, config: { ...config, ...threads, device, vae_decode_only: true, verbosity: 0 } });
    await Promise.race([loaded, ended]);
    worker.onEnd = () => process.exit(1);
    return new StableDiffusionCppBackend(worker, device);
  }

  /** The engine does not report prompt tokens. */
  promptTokens(): number {
    return 0;
  }

  async generate(request: SingleImageRequest, onStep: (step: number) => void, signal: AbortSignal): Promise<RawImage> {
    signal.throwIfAborted();
    const { width, height } = request.size;
    const cancel = (): void => this.worker.send({ type: 'cancel' });
    signal.addEventListener('abort', cancel, { once: true });
    let encoded: string | null;
    try {
      encoded = await this.#draw(request, onStep);
    } finally {
      signal.removeEventListener('abort', cancel);
    }
    signal.throwIfAborted();
    if (encoded === null) throw new Error('the engine returned no image');
    const bytes = Buffer.from(encoded, 'base64');
    const picture = await decodeImage(bytes, width * height);
    bytes.fill(0);
    if (picture.width !== width || picture.height !== height) throw new Error('the engine returned an image of another size');
    return picture;
  }

  /** Resolves to the image file as base64; null if the engine ends without an image. */
  #draw({ prompt, size, steps, guidance, seed }: SingleImageRequest, onStep: (step: number) => void): Promise<string | null> {
    const { worker } = this;
    let encoded: string | null = null;
    let reportedStep = 0;
    return new Promise((resolve, reject) => {
      worker.onMessage = (event: WorkerEvent) => {
        switch (event.type) {
          case 'progress': {
            // The engine also reports steps of loading and decoding.
            const { step } = event.news;
            if (typeof step !== 'number' || step <= reportedStep || step > steps) return;
            reportedStep = step;
            onStep(step);
            return;
          }
          case 'image':
            encoded = event.base64;
            return;
          case 'drawn':
            resolve(encoded);
            return;
          case 'failed':
            reject(new Error(event.message));
            return;
          case 'loaded':
            return;
          default:
            event satisfies never;
        }
      };
      // The engine's seeds have 31 bits; it draws a random one for negative values.
      const narrowSeed = Number(BigInt.asUintN(31, BigInt(seed)));
      worker.send({ type: 'draw', params: { prompt, ...size, steps, cfg_scale: guidance, seed: narrowSeed } });
    });
  }
}
