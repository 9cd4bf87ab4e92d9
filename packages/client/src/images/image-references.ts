/** Finds the images that a request references by URL. */
import type { ImageData } from './image-data.js';

/** An image part with an `http` or `https` URL. */
export interface ImageReference {
  readonly address: string;
  /** Path of the part in the request, such as `messages[0].content[1]`. */
  readonly field: string;
  replace(image: ImageData): void;
}

type JsonObject = Record<string, unknown>;

/** Returns the image parts of a request's messages, input items and tool results, in order. Does not search tool arguments and schemas. */
export function imageReferencesIn(body: unknown): readonly ImageReference[] {
  if (!isObject(body)) return [];
  return ['messages', 'input'].flatMap((name) => {
    const items = body[name];
    if (!Array.isArray(items)) return [];
    return items.flatMap((item: unknown, index) => {
      if (!isObject(item)) return [];
      return ['content', 'output'].flatMap((member) => inParts(item[member], `${name}[${index}].${member}`));
    });
  });
}

function inParts(parts: unknown, path: string): ImageReference[] {
  if (!Array.isArray(parts)) return [];
  return parts.flatMap((part: unknown, index) => (isObject(part) ? inPart(part, `${path}[${index}]`) : []));
}

function inPart(part: JsonObject, field: string): ImageReference[] {
  switch (part.type) {
    case 'image_url':
    case 'input_image': {
      const [holder, member] = isObject(part.image_url) ? [part.image_url, 'url'] : [part, 'image_url'];
      const replace: ImageReference['replace'] = ({ dataUri }) => {
        holder[member] = dataUri;
      };
      return reference(holder[member], field, replace);
    }
    case 'image': {
      if (!isObject(part.source) || part.source.type !== 'url') return [];
      return reference(part.source.url, field, ({ mediaType, base64 }) => {
        part.source = { type: 'base64', media_type: mediaType, data: base64 };
      });
    }
    case 'tool_result':
      return inParts(part.content, `${field}.content`);
    default:
      return [];
  }
}

function reference(address: unknown, field: string, replace: ImageReference['replace']): ImageReference[] {
  return typeof address === 'string' && /^https?:/i.test(address) ? [{ address, field, replace }] : [];
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
