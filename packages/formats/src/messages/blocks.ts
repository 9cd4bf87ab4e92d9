/** Converts content blocks to text. Blocks without a text form, such as images, are refused by name. */
import { refuse, reject } from '../errors/refusal.js';
import type { Block } from './schema.js';

export type Content = string | readonly Block[];

/** Text of system prompts, messages and tool results. Throws RequestError. */
export function textOfContent(content: Content, path: string): string {
  if (typeof content === 'string') return content;
  return content.map((block, index) => textOfBlock(block, `${path}[${index}]`)).join('\n');
}

export function textOfBlock(block: Block, path: string): string {
  switch (block.type) {
    case 'text':
      return block.text ?? reject(`${path}.text`, `${path}.text is required.`);
    case 'tool_reference':
      // A found tool. The model sees all tools from the start, so the name is enough.
      return block.tool_name ?? '';
    case 'search_result':
      return titled(block, textOfContent(asContent(block.content, `${path}.content`), `${path}.content`));
    case 'document':
      return titled(block, textOfSource(block.source, `${path}.source`));
    case 'image':
      // Coding agents recognize this wording and continue without their images.
      return refuse(path, `${path}: could not process image. This model does not see images.`);
    default:
      return refuse(path, `${path} is a content block of a type that is not supported here.`);
  }
}

/** Content that the schema leaves open, because other blocks use the member differently. */
export function asContent(content: unknown, path: string): Content {
  if (content === undefined || content === null) return '';
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return reject(path, `${path} must be a string or an array of content blocks.`);
  for (const [index, block] of content.entries()) {
    if (!isBlock(block)) reject(`${path}[${index}]`, `${path}[${index}] must be an object with a type.`);
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
  return refuse(path, `${path} must hold text. This model does not support PDF input, and no address is read here.`);
}

/** Title and context of a document are part of the model's input. */
function titled({ title, context }: Block, text: string): string {
  return [title, context, text].filter((part) => part).join('\n');
}
