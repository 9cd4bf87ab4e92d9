/** Converts content blocks of the Messages format to text and image parts. Errors name the path of the block. */
import { rejectInvalid, rejectUnsupported } from '../errors/reject.js';
import { COULD_NOT_PROCESS, type ImageReader } from '../input-images/image-reader.js';
import { isJsonObject } from '../json/json-value.js';
import { joinedContent } from '../message-content.js';
import type { ContentPart, MessageContent } from '../request.js';
import type { Block } from './schema.js';

export type Content = string | readonly Block[];

/** Content of user messages and tool results, which may contain images. Throws RequestError. */
export function contentOfBlocks(content: Content, path: string, images: ImageReader): MessageContent {
  if (typeof content === 'string') return content;
  return joinedContent(content.map((block, index) => contentPartOf(block, `${path}[${index}]`, images)));
}

export function contentPartOf(block: Block, path: string, images: ImageReader): ContentPart {
  return block.type === 'image' ? imageOf(block.source, path, images) : { type: 'text', text: textOfBlock(block, path) };
}

function imageOf(source: unknown, path: string, images: ImageReader): ContentPart {
  if (!isJsonObject(source)) return rejectInvalid(`${path}.source`, `${path}.source must be an object with a type.`);
  const { type, data, media_type: mediaType, url } = source;
  switch (type) {
    case 'base64':
      if (typeof data !== 'string') return rejectInvalid(`${path}.source.data`, `${path}.source.data must be a string.`);
      if (typeof mediaType !== 'string') return rejectInvalid(`${path}.source.media_type`, `${path}.source.media_type must be a string.`);
      return images.inBase64(data, mediaType, path);
    case 'url':
      if (typeof url !== 'string') return rejectInvalid(`${path}.source.url`, `${path}.source.url must be a string.`);
      return images.atUrl(url, 'auto', path);
    case 'file':
      return rejectUnsupported(path, `${path}: ${COULD_NOT_PROCESS} Files are not stored here. Send the image itself, in base64.`);
    default:
      return rejectInvalid(`${path}.source.type`, `${path}.source.type must be base64 or url.`);
  }
}

/** Content that may not contain images: system prompts, assistant messages and documents. Throws RequestError. */
export function textOfContent(content: Content, path: string): string {
  if (typeof content === 'string') return content;
  return content.map((block, index) => textOfBlock(block, `${path}[${index}]`)).join('\n');
}

export function textOfBlock(block: Block, path: string): string {
  switch (block.type) {
    case 'text':
      return block.text ?? rejectInvalid(`${path}.text`, `${path}.text is required.`);
    case 'tool_reference':
      // Result of a tool search. The model sees all tools from the start, so the name is enough.
      return block.tool_name ?? '';
    case 'search_result':
      return addTitle(block, textOfContent(asContent(block.content, `${path}.content`), `${path}.content`));
    case 'document':
      return addTitle(block, textOfSource(block.source, `${path}.source`));
    case 'image':
      return rejectUnsupported(path, `${path}: ${COULD_NOT_PROCESS} Images are allowed only in messages of the user and in tool results.`);
    default:
      return rejectUnsupported(path, `${path} is a content block of a type that is not supported here.`);
  }
}

/** Validates `content` of a block. The schema accepts any value there, because blocks use the member in different ways. */
export function asContent(content: unknown, path: string): Content {
  if (content === undefined || content === null) return '';
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return rejectInvalid(path, `${path} must be a string or an array of content blocks.`);
  for (const [index, block] of content.entries()) {
    if (!isBlock(block)) rejectInvalid(`${path}[${index}]`, `${path}[${index}] must be an object with a type.`);
  }
  return content;
}

function isBlock(value: unknown): value is Block {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const { type, text } = value as { readonly type?: unknown; readonly text?: unknown };
  return typeof type === 'string' && (text === undefined || typeof text === 'string');
}

function textOfSource(source: unknown, path: string): string {
  if (typeof source === 'object' && source !== null) {
    const { type, data, content } = source as { readonly type?: unknown; readonly data?: unknown; readonly content?: unknown };
    if (type === 'text' && typeof data === 'string') return data;
    if (type === 'content') return textOfContent(asContent(content, `${path}.content`), `${path}.content`);
  }
  return rejectUnsupported(path, `${path} must hold text. This model does not support PDF input, and no address is read here.`);
}

/** Prepends title and context of a document, which are part of the model's input. */
function addTitle({ title, context }: Block, text: string): string {
  return [title, context, text].filter((part) => part).join('\n');
}
