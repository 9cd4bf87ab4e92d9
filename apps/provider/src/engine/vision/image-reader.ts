/** `ImageReader` decodes the images of prompts for the vision engine, one at a time, and shrinks those above `maxImageTokens`. */
import type { PromptImage, PromptInput } from '../messages.js';
import type { ImageRequest, VisionReader } from '../process/loaded-model.js';
import { PromptTooLong } from '../process/prompt/chat-prompt.js';
import { ImageError, imagesOfPrompt, NO_IMAGES, type PromptImages } from '../process/prompt/prompt-images.js';
import { decodeBitmap } from './bitmap.js';
import { ImageBudget } from './image-budget.js';
import type { OwnedImage, Projector } from './projector.js';

/** Factor by which both sides of an image shrink, repeatedly, while it has more tokens than `maxImageTokens`. */
const SHRINK = 0.8;
const MIN_SCALE = 0.01;

export class ImageReader implements VisionReader {
  /** Settles with the last decoding of any prompt. Never rejects. */
  #last: Promise<unknown> = Promise.resolve();

  readonly #budget: ImageBudget;

  /** @param contextSize Tokens of one sequence. Also limits the decoded images of one cache scope. */
  constructor(
    private readonly projector: Pick<Projector, 'prepare'>,
    readonly maxImageTokens: number,
    private readonly contextSize: number,
  ) {
    this.#budget = new ImageBudget(contextSize);
  }

  async prepare(prompt: PromptInput, { scope, control }: ImageRequest): Promise<PromptImages> {
    const all = imagesOfPrompt(prompt);
    const reservation = await this.#budget.reserve(scope, all.length * this.maxImageTokens, control);
    if (reservation === null) return NO_IMAGES;
    const images: OwnedImage[] = [];
    const free = (): void => {
      for (const image of images.splice(0)) image.free();
      reservation.release();
    };
    try {
      await this.#decodeAll(all, images, () => control.cancelled);
      reservation.shrink(tokensOf(images));
      return { images: [...images], free };
    } catch (error) {
      free();
      throw error;
    }
  }

  async #decodeAll(all: readonly PromptImage[], decoded: OwnedImage[], isCancelled: () => boolean): Promise<void> {
    for (const image of all) {
      if (isCancelled()) return;
      decoded.push(await this.#inTurn(() => this.#decode(image)));
      const tokens = tokensOf(decoded);
      // Estimates the tokens of the remaining images instead of decoding them.
      if (tokens >= this.contextSize) throw new PromptTooLong(Math.ceil((tokens / decoded.length) * all.length));
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

function tokensOf(images: readonly OwnedImage[]): number {
  return images.reduce((sum, { tokens }) => sum + tokens.length, 0);
}
