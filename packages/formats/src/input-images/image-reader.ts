/**
 * `ImageReader` reads and checks the input images of one request: data URIs, base64 and URLs.
 *
 * Errors name the message part with the image.
 */
import {
  fromBase64OrNull,
  MAX_INPUT_IMAGE_BYTES,
  MAX_INPUT_IMAGE_PIXELS,
  MAX_INPUT_IMAGE_SIDE,
  MAX_INPUT_IMAGES,
} from '@inference/protocol';
import { rejectInvalid, rejectUnsupported } from '../errors/reject.js';
import type { ContentPart, InputImage, InputImageType } from '../request.js';
import { type HeaderProblem, imageTypeOf, otherTypeOf, readImageHeader } from './image-header.js';

/** Image that the coordinator fetched from a URL in the body. */
export type FetchedImage = Pick<InputImage, 'mediaType' | 'base64'>;

/**
 * Returns the image of a URL: a fetched image that passed {@link checkInputImage}, or before the fetch a placeholder with empty
 * `base64`. May throw RequestError.
 */
export type ImageUrlResolver = (url: string, field: string) => FetchedImage;

type Detail = InputImage['detail'];

const MEDIA_TYPES: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/webp', 'image/gif'] satisfies InputImageType[]);
const ACCEPTED = 'Accepted are PNG, JPEG, WebP and GIF.';
/** Number of base64 characters of an image of the maximum size. */
const MAX_BASE64_LENGTH = 4 * Math.ceil(MAX_INPUT_IMAGE_BYTES / 3);
/** The part of a base64 data URI (RFC 2397) before the comma, with any parameters. */
const DATA_URI = /^data:([a-z]+\/[a-z0-9.+-]+)(?:;[a-z0-9-]+=[^;,]*)*;base64$/i;
const MAX_DATA_URI_HEAD = 256;

/** Coding agents recognize these words, and then continue without images. */
export const COULD_NOT_PROCESS = 'could not process image.';

export class ImageReader {
  readonly #resolve: ImageUrlResolver | undefined;
  #count = 0;

  /** @param resolve Absent: URLs are refused. */
  constructor(resolve?: ImageUrlResolver) {
    this.#resolve = resolve;
  }

  /**
   * Reads the image of a data URI or `https` URL. Throws RequestError.
   *
   * The data decides about the image type, as in OpenAI's API, because many scripts label every file as image/jpeg.
   */
  atUrl(url: string, detail: Detail, field: string): ContentPart {
    this.#countImage(field);
    if (!/^data:/i.test(url)) return part({ ...this.#fetched(url, field), detail, field, url });
    const { mediaType, base64 } = dataUriParts(url, field);
    requireImageType(mediaType, field);
    return part({ ...checkedImage(base64, field), base64, detail, field });
  }

  /** Reads an image in base64. `declared`: media type that the data must have, as in Anthropic's API; null: any. */
  inBase64(base64: string, declared: string | null, field: string): ContentPart {
    this.#countImage(field);
    if (declared !== null) requireImageType(declared, field);
    const { mediaType, pixels } = checkedImage(base64, field);
    if (declared !== null && declared !== mediaType) {
      rejectInvalid(field, `${field}: ${COULD_NOT_PROCESS} The data is ${mediaType}, and the media type says ${declared}.`);
    }
    return part({ mediaType, pixels, base64, detail: 'auto', field });
  }

  #countImage(field: string): void {
    if (++this.#count > MAX_INPUT_IMAGES) rejectInvalid(field, `${field}: too many images. A request has at most ${MAX_INPUT_IMAGES}.`);
  }

  #fetched(url: string, field: string): FetchedImage {
    if (/^https:\/\//i.test(url)) {
      if (this.#resolve !== undefined) return this.#resolve(url, field);
      rejectUnsupported(field, `${field}: ${COULD_NOT_PROCESS} Images are not fetched from URLs here. Send the image itself, in base64.`);
    }
    if (/^[a-z][a-z0-9+.-]*:/i.test(url))
      rejectUnsupported(field, `${field}: ${COULD_NOT_PROCESS} Its URL must be a data URI with base64, or begin with https.`);
    return rejectInvalid(field, `${field}: ${COULD_NOT_PROCESS} Its URL is not valid. Send a data URI such as "data:image/png;base64,…".`);
  }
}

function part(image: InputImage): ContentPart {
  return { type: 'image', image };
}

/** Media type and data of a base64 data URI. Throws RequestError. */
export function dataUriParts(uri: string, field: string): { readonly mediaType: string; readonly base64: string } {
  const comma = uri.indexOf(',');
  const mediaType = comma === -1 || comma > MAX_DATA_URI_HEAD ? undefined : DATA_URI.exec(uri.slice(0, comma))?.[1]?.toLowerCase();
  if (mediaType === undefined)
    return rejectInvalid(field, `${field}: ${COULD_NOT_PROCESS} The data URI must be of the form "data:image/png;base64,…".`);
  // `image/jpg` is a common mistake.
  return { mediaType: mediaType === 'image/jpg' ? 'image/jpeg' : mediaType, base64: uri.slice(comma + 1) };
}

function requireImageType(mediaType: string, field: string): void {
  if (!MEDIA_TYPES.has(mediaType)) rejectUnsupported(field, `${field}: ${COULD_NOT_PROCESS} Its media type is not supported. ${ACCEPTED}`);
}

/** Decodes and checks an image, and detects its type. Throws RequestError. */
function checkedImage(base64: string, field: string): CheckedImage {
  if (base64.length > MAX_BASE64_LENGTH) return rejectInvalid(field, `${field}: ${TOO_LARGE}`);
  const bytes = fromBase64OrNull(base64);
  if (bytes === null || bytes.length === 0) {
    return rejectInvalid(field, `${field}: ${COULD_NOT_PROCESS} The data is ${base64 === '' ? 'empty' : 'not valid base64'}.`);
  }
  const mediaType = imageTypeOf(bytes);
  const checked = mediaType === null ? unknownType(bytes) : checkInputImage(bytes, mediaType);
  return typeof checked === 'string' ? rejectInvalid(field, `${field}: ${checked}`) : checked;
}

/** Clients search for "image exceeds" and "maximum". */
const TOO_LARGE = `image exceeds the maximum of ${MAX_INPUT_IMAGE_BYTES / 2 ** 20} MiB. Send a smaller image.`;

const HEADER_PROBLEMS: Readonly<Record<HeaderProblem, string>> = {
  truncated: 'The data ends before the image is complete.',
  malformed: 'The data is damaged.',
};

/** Result of a check. `pixels` comes from the file's header. */
interface CheckedImage {
  readonly mediaType: InputImageType;
  readonly pixels: number;
}

/** Checks an image of a known type. Returns an error message, without the field name, if the image is not acceptable. */
export function checkInputImage(bytes: Uint8Array, mediaType: InputImageType): CheckedImage | string {
  if (bytes.length > MAX_INPUT_IMAGE_BYTES) return TOO_LARGE;
  const header = readImageHeader(bytes, mediaType);
  if (typeof header === 'string') return `${COULD_NOT_PROCESS} ${HEADER_PROBLEMS[header]}`;
  if (header.isAnimated) return `${COULD_NOT_PROCESS} Animated images are not supported. Send a single frame.`;
  const { width, height } = header;
  if (Math.max(width, height) > MAX_INPUT_IMAGE_SIDE) {
    return `image dimensions exceed the maximum of ${MAX_INPUT_IMAGE_SIDE} pixels. Send a smaller image.`;
  }
  if (width * height > MAX_INPUT_IMAGE_PIXELS) {
    return `image dimensions exceed the maximum of ${MAX_INPUT_IMAGE_PIXELS / 1_000_000} megapixels. Send a smaller image.`;
  }
  return { mediaType, pixels: width * height };
}

function unknownType(bytes: Uint8Array): string {
  const other = otherTypeOf(bytes);
  return `${COULD_NOT_PROCESS} ${other === null ? 'The data is not an image of a known type' : `${other} is not supported`}. ${ACCEPTED}`;
}

/** Parses `detail` of an image part. `original` is treated as `high`. Throws RequestError. */
export function detailOf(detail: unknown, field: string): Detail {
  switch (detail) {
    case undefined:
    case null:
    case 'auto':
      return 'auto';
    case 'low':
      return 'low';
    case 'high':
    case 'original':
      return 'high';
    default:
      return rejectInvalid(`${field}.detail`, `${field}.detail must be auto, low, high or original.`);
  }
}

/** Reads the image of a file part, from a data URI or base64 in `file_data`. Throws RequestError on other files. */
export function imageInFile(file: Readonly<Record<string, unknown>>, images: ImageReader, field: string): ContentPart {
  if (file.file_id != null) rejectUnsupported(field, `${field}: files are not stored here. Send the image itself, in base64.`);
  if (file.file_url != null) rejectUnsupported(field, `${field}: files are not fetched from URLs here. Send the image itself, in base64.`);
  const { file_data: data } = file;
  if (typeof data !== 'string') return rejectInvalid(field, `${field}.file_data must be a string.`);
  if (!/^data:/i.test(data)) return images.inBase64(data, null, field);
  if (!dataUriParts(data, field).mediaType.startsWith('image/')) {
    rejectUnsupported(field, `${field}: only files that are images are supported. Send the text of other files.`);
  }
  return images.atUrl(data, 'auto', field);
}
