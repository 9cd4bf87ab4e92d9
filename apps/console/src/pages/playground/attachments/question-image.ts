/** Images attached to a question: their limits, and whether the selected models read images. */
import { MAX_INPUT_IMAGES, MAX_REQUEST_BYTES, MAX_VISION_REQUEST_BYTES } from '@inference/protocol';
import { type ModelEntry, readsImages } from '../../../features/account/models.js';

export interface QuestionImage {
  /** File name, or a name for a pasted image. */
  readonly name: string;
  /** `data:` URI with the exact bytes that are sent. */
  readonly dataUri: string;
}

/** Maximum characters of all images of a request, which leave {@link MAX_REQUEST_BYTES} of the body for text. */
const MAX_IMAGE_CHARS = MAX_VISION_REQUEST_BYTES - MAX_REQUEST_BYTES;

export function imageChars(images: readonly QuestionImage[]): number {
  return images.reduce((sum, { dataUri }) => sum + dataUri.length, 0);
}

/** Reason why a request with `images` cannot also contain `added`. Null: the request can. */
export function imageProblem(images: readonly QuestionImage[], added: QuestionImage): string | null {
  if (images.length >= MAX_INPUT_IMAGES) return `A conversation can have at most ${MAX_INPUT_IMAGES} images.`;
  if (imageChars([...images, added]) <= MAX_IMAGE_CHARS) return null;
  return `${added.name} is too large together with the other images of this conversation. Remove an image, or start a new conversation.`;
}

/** Reason why images cannot be sent to the selected models. Null: they can. */
export function textOnlyReason(models: readonly ModelEntry[], selected: readonly string[]): string | null {
  if (!models.some(readsImages)) return 'No connected machine serves a model that reads images.';
  const textOnly = selected.filter((id) => !models.some((model) => model.id === id && readsImages(model)));
  const [first] = textOnly;
  return first === undefined ? null : `${first} reads text only. Choose a model that reads images.`;
}

const DATA_URI = /^data:image\/(?:png|jpeg);base64,[A-Za-z0-9+/]+={0,2}$/;

/** Whether a text has the form of the `data:` URIs that the page creates. */
export function isImageDataUri(text: string): boolean {
  return DATA_URI.test(text);
}
