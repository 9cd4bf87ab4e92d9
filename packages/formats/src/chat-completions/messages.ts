/** `normaliseMessages` converts the messages of a chat completion request to the internal `ChatMessage` form. */
import { isPresent, refuse, reject } from '../errors/refusal.js';
import { detailOf, type ImageReader, imageInFile } from '../input-images/image-reader.js';
import { isJsonObject } from '../json/json-value.js';
import { joinedContent } from '../message-content.js';
import type { ChatMessage, ContentPart, MessageContent, ToolCall } from '../request.js';
import type { Message, Part } from './schema.js';

/** Throws RequestError on unsupported parts, tool calls that are not functions, results without a call, and missing members. */
export function normaliseMessages(messages: readonly Message[], images: ImageReader): readonly ChatMessage[] {
  const names = new Map<string, string>();
  return messages.map((message, index) => {
    const path = `messages[${index}]`;
    if (isPresent(message.audio)) refuse(`${path}.audio`, `${path}.audio is not supported.`);
    switch (message.role) {
      case 'system':
      case 'developer':
        return { role: 'system', content: textContentOf(message, path) };
      case 'user':
        return { role: 'user', content: contentOf(message, path, images) };
      case 'assistant': {
        const toolCalls = [
          ...(message.tool_calls ?? []).map((_, call) => toolCallOf(message, call, path)),
          ...functionCallOf(message, index),
        ];
        for (const { id, name } of toolCalls) names.set(id, name);
        return { role: 'assistant', content: textContentOf(message, path), reasoning: message.reasoning_content || null, toolCalls };
      }
      case 'tool': {
        const toolCallId = message.tool_call_id || reject(`${path}.tool_call_id`, `${path}.tool_call_id is required.`);
        const name = names.get(toolCallId);
        if (name === undefined) {
          const field = `${path}.tool_call_id`;
          return reject(field, `${field} must be the id of a call in the tool_calls of an earlier assistant message.`);
        }
        return { role: 'tool', content: contentOf(message, path, images), toolCallId, name, isError: false };
      }
      case 'function': {
        const name = message.name || reject(`${path}.name`, `${path}.name is required.`);
        return { role: 'tool', content: textContentOf(message, path), toolCallId: lastCallOf(name, names), name, isError: false };
      }
      default:
        return message.role satisfies never;
    }
  });
}

function toolCallOf(message: Message, index: number, path: string): ToolCall {
  const call = message.tool_calls?.[index];
  const field = `${path}.tool_calls[${index}]`;
  if (call?.function === undefined) return refuse(field, `${field} must be a call of type "function".`);
  return { id: call.id, name: call.function.name, arguments: call.function.arguments };
}

/** Call of the legacy member `function_call`. Such calls have no id, so the message index serves as one. */
function functionCallOf({ function_call: call }: Message, index: number): ToolCall[] {
  return isPresent(call) ? [{ id: `call_${index}`, name: call.name, arguments: call.arguments }] : [];
}

/** Id of the last call of a function; the function's name if there was no call. */
function lastCallOf(name: string, names: ReadonlyMap<string, string>): string {
  return [...names].findLast(([, called]) => called === name)?.[0] ?? name;
}

/** Content of a role that may send images. */
function contentOf(message: Message, path: string, images: ImageReader): MessageContent {
  const { content } = message;
  if (!Array.isArray(content)) return textContentOf(message, path);
  return joinedContent(content.map((part: Part, index) => contentPartOf(part, `${path}.content[${index}]`, images)));
}

function contentPartOf(part: Part, path: string, images: ImageReader): ContentPart {
  switch (part.type) {
    case 'image_url': {
      const { image_url: image } = part;
      if (!isJsonObject(image) || typeof image.url !== 'string') {
        return reject(`${path}.image_url`, `${path}.image_url must be an object with a url.`);
      }
      return images.atUrl(image.url, detailOf(image.detail, `${path}.image_url`), path);
    }
    case 'file':
      if (!isJsonObject(part.file)) return reject(`${path}.file`, `${path}.file must be an object with file_data.`);
      return imageInFile(part.file, images, path);
    default:
      return { type: 'text', text: textOf(part, path) };
  }
}

function textContentOf(message: Message, path: string): string {
  const { content } = message;
  const field = `${path}.content`;
  if (typeof content === 'string') return content;
  if (isPresent(content)) {
    return content.map((part, index) => refusalOf(part, message) ?? onlyTextOf(part, message, `${field}[${index}]`)).join('\n');
  }
  // Only assistant messages may omit `content`.
  if (message.role === 'assistant') return message.refusal ?? '';
  return reject(field, `${field} is required.`);
}

/** Text of an assistant's refusal part; null for other parts and roles. */
function refusalOf(part: Part, { role }: Message): string | null {
  return role === 'assistant' && part.type === 'refusal' ? (part.refusal ?? null) : null;
}

function onlyTextOf(part: Part, { role }: Message, path: string): string {
  if (part.type === 'image_url')
    refuse(path, `${path}: images are not allowed in messages of the role "${role}", only in those of "user" and "tool".`);
  return textOf(part, path);
}

function textOf(part: Part, path: string): string {
  if (part.type !== 'text') refuse(path, `${path} must be a part of type "text" or "image_url". Audio and other files are not supported.`);
  return part.text ?? reject(`${path}.text`, `${path}.text is required.`);
}
