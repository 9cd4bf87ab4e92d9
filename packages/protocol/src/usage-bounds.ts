/** Bounds of usage, computed from bytes alone. Agents never report more, so a signed usage beyond a bound is a violation. */
import { MAX_INPUT_IMAGES } from './wire/limits.js';

/** Maximum tokens that a chat template adds in all. Additions per message are smaller than the JSON of the message. */
export const TEMPLATE_TOKENS = 512;

/** Maximum tokens without own bytes in the response: end tokens, a withheld stop sequence, characters made of several tokens. */
export const SILENT_TOKENS = 64;

/**
 * Maximum prompt tokens of a request: at least one byte per token of text, plus the tokens of the template and of images.
 *
 * @param textBytes Bytes of the body, without the base64 data of images.
 * @param imageTokens Number of images times the maximum tokens of an image.
 */
export function promptTokenBound(textBytes: number, imageTokens = 0): number {
  return textBytes + TEMPLATE_TOKENS + imageTokens;
}

/** Names of the parts that hold images in any format, as types or members. */
const IMAGE_NAMES = /"(?:input_)?(?:image(?:_url)?|file)"/g;

/** Upper bound of the images in a JSON request, by the names of their parts. */
export function maxImagesIn(body: Uint8Array): number {
  const text = new TextDecoder('latin1').decode(body);
  return Math.min(MAX_INPUT_IMAGES, text.match(IMAGE_NAMES)?.length ?? 0);
}

/** Maximum of completion tokens outside of think sections, for an answer of so many bytes. */
export function visibleTokenBound(answerBytes: number): number {
  return answerBytes + SILENT_TOKENS;
}
