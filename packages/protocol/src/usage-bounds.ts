/**
 * Upper bounds of token usage, computed from the byte lengths of request and response.
 *
 * Agents cut their usage to these bounds before signing, so signed usage above a bound is a violation.
 */
import { MAX_INPUT_IMAGES } from './wire/limits.js';

/** Maximum tokens that a chat template adds in total. Additions per message are smaller than the JSON around the message. */
export const TEMPLATE_TOKENS = 512;

/** Maximum tokens that add no bytes to the response: end tokens, a withheld stop sequence, parts of multi-token characters. */
export const SILENT_TOKENS = 64;

/**
 * Maximum prompt tokens of a request: one per byte of text, plus the tokens of template and images.
 *
 * @param textBytes Bytes of the body, without the base64 data of images.
 * @param imageTokens Number of images times the maximum tokens of an image.
 */
export function promptTokenBound(textBytes: number, imageTokens = 0): number {
  return textBytes + TEMPLATE_TOKENS + imageTokens;
}

/** Type and member names of image parts, in all formats. */
const IMAGE_NAMES = /"(?:input_)?(?:image(?:_url)?|file)"/g;

/** An escape in a JSON string. An escaped backslash is matched too, because a `u` after it begins no escape. */
const JSON_ESCAPES = /\\(?:u00([0-9a-fA-F]{2})|.)/gs;

/** Upper bound of the images in a JSON request: the number of part names, at most `MAX_INPUT_IMAGES`. */
export function maxImagesIn(body: Uint8Array): number {
  const raw = new TextDecoder('latin1').decode(body);
  const text = raw.includes('\\u00') ? raw.replace(JSON_ESCAPES, unescapedNameCharacter) : raw;
  return Math.min(MAX_INPUT_IMAGES, text.match(IMAGE_NAMES)?.length ?? 0);
}

/** The escaped character, if names of image parts contain such characters; else the escape itself. */
function unescapedNameCharacter(sequence: string, hex: string | undefined): string {
  const character = hex === undefined ? '' : String.fromCharCode(Number.parseInt(hex, 16));
  return /[a-z_]/.test(character) ? character : sequence;
}

/** Maximum completion tokens outside think segments, for an answer of `answerBytes` bytes. */
export function visibleTokenBound(answerBytes: number): number {
  return answerBytes + SILENT_TOKENS;
}
