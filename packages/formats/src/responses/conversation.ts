/**
 * `conversationOf` converts instructions and input items of the Responses format to messages.
 *
 * Adjacent items of an earlier response (reasoning, text, calls) become one assistant message.
 */
import { isPresent, refuse, reject } from '../errors/refusal.js';
import { detailOf, type ImageReader, imageInFile } from '../input-images/image-reader.js';
import { isJsonObject } from '../json/json-value.js';
import { joinedContent } from '../message-content.js';
import type { ChatMessage, ContentPart, MessageContent, ToolCall } from '../request.js';
import type { Item, ResponsesRequest } from './schema.js';

/** Ignores items of unknown types. Throws RequestError, which names the item. */
export function conversationOf({ instructions, input }: ResponsesRequest, images: ImageReader): readonly ChatMessage[] {
  const conversation = new Conversation(typeof input === 'string' ? [] : input);
  if (instructions) conversation.add({ role: 'system', content: instructions });
  if (typeof input === 'string') conversation.add({ role: 'user', content: input });
  else for (const [index, item] of input.entries()) addItem(conversation, item, { path: `input[${index}]`, images });
  const messages = conversation.end();
  return messages.length === 0 ? reject('input', 'input must hold at least one message.') : messages;
}

const KNOWN_ITEMS = new Set(['message', 'function_call', 'function_call_output', 'reasoning', 'item_reference']);

/** Paths of ignored items: types that the model cannot read, such as web searches of another service. */
export function ignoredItems({ input }: ResponsesRequest): readonly string[] {
  if (typeof input === 'string') return [];
  return input.flatMap(({ type }, index) => {
    if (KNOWN_ITEMS.has(type ?? 'message')) return [];
    return [`input[${index}]${/^[a-z_]{1,64}$/.test(type ?? '') ? ` (${type})` : ''}`];
  });
}

interface ItemContext {
  readonly path: string;
  readonly images: ImageReader;
}

function addItem(conversation: Conversation, item: Item, { path, images }: ItemContext): void {
  switch (item.type ?? 'message') {
    case 'message':
      addMessage(conversation, item, { path, images });
      break;
    case 'function_call':
      conversation.addCall(callOf(item, path));
      break;
    case 'function_call_output': {
      const toolCallId = item.call_id ?? reject(`${path}.call_id`, `${path}.call_id is required.`);
      const content = contentOf(item.output, { path: `${path}.output`, images });
      if (!conversation.hasCall(toolCallId)) reject(`${path}.call_id`, `${path}.call_id must be that of a function_call in input.`);
      conversation.add({ role: 'tool', content, toolCallId, name: conversation.nameOf(toolCallId), isError: false });
      break;
    }
    case 'reasoning':
      conversation.addReasoning(reasoningOf(item, path));
      break;
    case 'item_reference':
      refuse(path, `${path} refers to a stored item. Nothing is stored here: send the item itself (store: false).`);
      break;
    default:
  }
}

function callOf(item: Item, path: string): ToolCall {
  const id = item.call_id ?? reject(`${path}.call_id`, `${path}.call_id is required.`);
  const name = item.name ?? reject(`${path}.name`, `${path}.name is required.`);
  if (typeof item.arguments !== 'string') return reject(`${path}.arguments`, `${path}.arguments must be a string.`);
  return { id, name, arguments: item.arguments };
}

/** Reasoning text, or else its summary. Encrypted reasoning of other services is not readable. */
function reasoningOf({ content, summary }: Item, path: string): string {
  return isPresent(content) ? textOf(content, `${path}.content`) : textOf(summary ?? '', `${path}.summary`);
}

function addMessage(conversation: Conversation, item: Item, { path, images }: ItemContext): void {
  const role = item.role ?? reject(`${path}.role`, `${path}.role is required.`);
  const field = `${path}.content`;
  if (role === 'user') conversation.add({ role, content: contentOf(item.content, { path: field, images }) });
  else if (role === 'assistant') conversation.addAnswer(textOf(item.content, field));
  else conversation.add({ role: 'system', content: textOf(item.content, field) });
}

/** Types of text parts, in requests and in responses of earlier turns. */
const TEXT_PARTS = new Set(['input_text', 'output_text', 'text', 'summary_text', 'reasoning_text']);

/** Content of user messages and function results, which may contain images. */
function contentOf(content: unknown, { path, images }: ItemContext): MessageContent {
  if (!Array.isArray(content)) return textOf(content, path);
  return joinedContent(content.map((part: unknown, index) => contentPartOf(part, `${path}[${index}]`, images)));
}

function contentPartOf(part: unknown, path: string, images: ImageReader): ContentPart {
  if (isJsonObject(part)) {
    if (part.type === 'input_image') return inputImageOf(part, path, images);
    if (part.type === 'input_file') return imageInFile(part, images, path);
  }
  return { type: 'text', text: textOfPart(part, path) };
}

function inputImageOf({ image_url, file_id, detail }: Readonly<Record<string, unknown>>, path: string, images: ImageReader): ContentPart {
  if (isPresent(file_id)) refuse(path, `${path}: files are not stored here. Send the image as image_url, with a data URI.`);
  if (typeof image_url !== 'string') return reject(`${path}.image_url`, `${path}.image_url must be a string.`);
  return images.atUrl(image_url, detailOf(detail, path), path);
}

function textOf(content: unknown, path: string): string {
  if (typeof content === 'string') return content;
  if (!isPresent(content)) return reject(path, `${path} is required.`);
  if (!Array.isArray(content)) return reject(path, `${path} must be a string or an array of parts.`);
  return content.map((part: unknown, index) => textOfPart(part, `${path}[${index}]`)).join('\n');
}

function textOfPart(part: unknown, path: string): string {
  if (typeof part !== 'object' || part === null) return reject(path, `${path} must be an object with a type.`);
  const { type, text, refusal } = part as { readonly type?: unknown; readonly text?: unknown; readonly refusal?: unknown };
  if (typeof type !== 'string') return reject(`${path}.type`, `${path}.type must be a string.`);
  if (type === 'refusal' && typeof refusal === 'string') return refusal;
  if (type === 'input_image') return refuse(path, `${path}: images are allowed only in messages of the user and in results of functions.`);
  if (!TEXT_PARTS.has(type)) return refuse(path, `${path} must be a part of text or an image. Audio and other files are not supported.`);
  return typeof text === 'string' ? text : reject(`${path}.text`, `${path}.text must be a string.`);
}

class Conversation {
  readonly #messages: ChatMessage[] = [];
  readonly #names = new Map<string, string>();
  #reasoning: string[] = [];
  #texts: string[] = [];
  #calls: ToolCall[] = [];
  /** Ids of the calls in the input. Results of ignored calls, such as `local_shell_call`, are also function outputs. */
  readonly #callIds: ReadonlySet<string>;

  constructor(input: readonly Item[]) {
    this.#callIds = new Set(input.flatMap(({ type, call_id: id }) => (isPresent(id) && type !== 'function_call_output' ? [id] : [])));
  }

  hasCall(callId: string): boolean {
    return this.#callIds.has(callId);
  }

  nameOf(callId: string): string | null {
    return this.#names.get(callId) ?? null;
  }

  add(message: ChatMessage): void {
    this.#closeAnswer();
    this.#messages.push(message);
  }

  addReasoning(text: string): void {
    if (this.#texts.length > 0 || this.#calls.length > 0) this.#closeAnswer();
    if (text !== '') this.#reasoning.push(text);
  }

  addAnswer(text: string): void {
    if (this.#calls.length > 0) this.#closeAnswer();
    this.#texts.push(text);
  }

  addCall(call: ToolCall): void {
    this.#names.set(call.id, call.name);
    this.#calls.push(call);
  }

  end(): readonly ChatMessage[] {
    this.#closeAnswer();
    return this.#messages;
  }

  #closeAnswer(): void {
    if (this.#reasoning.length === 0 && this.#texts.length === 0 && this.#calls.length === 0) return;
    const reasoning = this.#reasoning.length === 0 ? null : this.#reasoning.join('\n');
    this.#messages.push({ role: 'assistant', content: this.#texts.join('\n'), reasoning, toolCalls: this.#calls });
    this.#reasoning = [];
    this.#texts = [];
    this.#calls = [];
  }
}
