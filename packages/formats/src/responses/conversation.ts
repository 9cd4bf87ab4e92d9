/**
 * `conversationOf` converts instructions and input items of the Responses format to messages.
 *
 * Adjacent items of an earlier response (reasoning, text, calls) become one assistant message.
 */
import { isPresent, rejectInvalid, rejectUnsupported } from '../errors/reject.js';
import { detailOf, type ImageReader, imageInFile } from '../input-images/image-reader.js';
import { isJsonObject } from '../json/json-value.js';
import { joinedContent } from '../message-content.js';
import type { ChatMessage, ContentPart, MessageContent, ToolCall } from '../request.js';
import type { Item, ResponsesRequest } from './schema.js';

/** Messages of the conversation, without items of unknown types. Throws RequestError, which names the item. */
export function conversationOf({ instructions, input }: ResponsesRequest, images: ImageReader): readonly ChatMessage[] {
  const conversation = new Conversation(typeof input === 'string' ? [] : input);
  if (instructions) conversation.add({ role: 'system', content: instructions });
  if (typeof input === 'string') conversation.add({ role: 'user', content: input });
  else for (const [index, item] of input.entries()) addItem(conversation, item, { path: `input[${index}]`, images });
  const messages = conversation.end();
  return messages.length === 0 ? rejectInvalid('input', 'input must hold at least one message.') : messages;
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
      const toolCallId = item.call_id ?? rejectInvalid(`${path}.call_id`, `${path}.call_id is required.`);
      const content = contentOf(item.output, { path: `${path}.output`, images });
      if (!conversation.hasCall(toolCallId)) rejectInvalid(`${path}.call_id`, `${path}.call_id must be that of a function_call in input.`);
      conversation.add({ role: 'tool', content, toolCallId, name: conversation.nameOf(toolCallId), isError: false });
      break;
    }
    case 'reasoning':
      conversation.addReasoning(reasoningOf(item, path));
      break;
    case 'item_reference':
      rejectUnsupported(path, `${path} refers to a stored item. Nothing is stored here: send the item itself (store: false).`);
      break;
    default:
  }
}

function callOf(item: Item, path: string): ToolCall {
  const id = item.call_id ?? rejectInvalid(`${path}.call_id`, `${path}.call_id is required.`);
  const name = item.name ?? rejectInvalid(`${path}.name`, `${path}.name is required.`);
  if (typeof item.arguments !== 'string') return rejectInvalid(`${path}.arguments`, `${path}.arguments must be a string.`);
  return { id, name, arguments: item.arguments };
}

/** Reasoning text, or else its summary. Encrypted reasoning of other services is not readable. */
function reasoningOf({ content, summary }: Item, path: string): string {
  return isPresent(content) ? textOf(content, `${path}.content`) : textOf(summary ?? '', `${path}.summary`);
}

function addMessage(conversation: Conversation, item: Item, { path, images }: ItemContext): void {
  const role = item.role ?? rejectInvalid(`${path}.role`, `${path}.role is required.`);
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
  if (isPresent(file_id)) rejectUnsupported(path, `${path}: files are not stored here. Send the image as image_url, with a data URI.`);
  if (typeof image_url !== 'string') return rejectInvalid(`${path}.image_url`, `${path}.image_url must be a string.`);
  return images.atUrl(image_url, detailOf(detail, path), path);
}

function textOf(content: unknown, path: string): string {
  if (typeof content === 'string') return content;
  if (!isPresent(content)) return rejectInvalid(path, `${path} is required.`);
  if (!Array.isArray(content)) return rejectInvalid(path, `${path} must be a string or an array of parts.`);
  return content.map((part: unknown, index) => textOfPart(part, `${path}[${index}]`)).join('\n');
}

function textOfPart(part: unknown, path: string): string {
  if (typeof part !== 'object' || part === null) return rejectInvalid(path, `${path} must be an object with a type.`);
  const { type, text, refusal } = part as { readonly type?: unknown; readonly text?: unknown; readonly refusal?: unknown };
  if (typeof type !== 'string') return rejectInvalid(`${path}.type`, `${path}.type must be a string.`);
  if (type === 'refusal' && typeof refusal === 'string') return refusal;
  if (type === 'input_image' || type === 'input_file')
    return rejectUnsupported(path, `${path}: images and files are allowed only in messages of the user and in results of functions.`);
  if (!TEXT_PARTS.has(type))
    return rejectUnsupported(
      path,
      `${path} must be text, or an image of the user or of a function. Audio and other files are not supported.`,
    );
  return typeof text === 'string' ? text : rejectInvalid(`${path}.text`, `${path}.text must be a string.`);
}

class Conversation {
  readonly #messages: ChatMessage[] = [];
  readonly #functionNameByCallId = new Map<string, string>();
  /** Reasoning, texts and calls of the assistant message that is being collected. */
  #reasoning: string[] = [];
  #texts: string[] = [];
  #calls: ToolCall[] = [];
  /** Ids of all calls in the input, also of ignored ones such as `local_shell_call`, whose results are function outputs too. */
  readonly #callIds: ReadonlySet<string>;

  constructor(input: readonly Item[]) {
    this.#callIds = new Set(input.flatMap(({ type, call_id: id }) => (isPresent(id) && type !== 'function_call_output' ? [id] : [])));
  }

  hasCall(callId: string): boolean {
    return this.#callIds.has(callId);
  }

  nameOf(callId: string): string | null {
    return this.#functionNameByCallId.get(callId) ?? null;
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
    this.#functionNameByCallId.set(call.id, call.name);
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
