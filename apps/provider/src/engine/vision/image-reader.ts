/** `ImageReader` decodes the images of prompts, one at a time, within the projector's bounds. */
import type { PromptImage, PromptInput } from '../messages.js';
import type { VisionReader } from '../process/loaded-model.js';
import { PromptTooLong } from '../process/prompt/chat-prompt.js';
import { ImageError, imagesOfPrompt, type PromptImages } from '../process/prompt/prompt-images.js';
import { decodeBitmap } from './bitmap.js';
import type { OwnedImage, Projector } from './projector.js';

/** Factor by which both sides of an image shrink, repeatedly, while it has more tokens than `maxImageTokens`. */
const SHRINK = 0.8;
const MIN_SCALE = 0.01;

export class ImageReader implements VisionReader {
  /** The last decoding of any prompt. Never rejects. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly projector: Pick<Projector, 'prepare'>,
    readonly maxImageTokens: number,
  ) {}

  async prepare(prompt: PromptInput, limit: number, isCancelled: () => boolean): Promise<PromptImages> {
    const images: OwnedImage[] = [];
    const free = (): void => {
      for (const image of images.splice(0)) image.free();
    };
    try {
      let tokens = 0;
      const all = imagesOfPrompt(prompt);
      for (const image of all) {
        if (isCancelled()) break;
        const decoded = await this.#inTurn(() => this.#decode(image));
        images.push(decoded);
        tokens += decoded.tokens.length;
        // The other images are estimated, because decoding takes long.
        if (tokens >= limit) throw new PromptTooLong(Math.ceil((tokens / images.length) * all.length));
      }
      return { images: [...images], free };
    } catch (error) {
      free();
      throw error;
    }
  }

  #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const run = this.#last.then(work);
    this.#last = run.catch(() => {});
    return run;
  }

  async #decode({ data, field }: PromptImage): Promise<OwnedImage> {
    for (let scale = 1; scale > MIN_SCALE; scale *= SHRINK) {
      const bitmap = await decodeBitmap(data, scale);
      if (bitmap === null) break;
      const image = await this.projector.prepare(bitmap);
      if (image === null) break;
      if (image.tokens.length <= this.maxImageTokens) return image;
      image.free();
    }
    throw new ImageError(field);
  }
}
