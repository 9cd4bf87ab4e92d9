/** `normaliseMessages` converts the messages of a chat completion request to the internal `ChatMessage` form. */
import { isPresent, rejectInvalid, rejectUnsupported } from '../errors/reject.js';
import { detailOf, type ImageReader, imageInFile } from '../input-images/image-reader.js';
import { isJsonObject } from '../json/json-value.js';
import { joinedContent } from '../message-content.js';
import type { ChatMessage, ContentPart, MessageContent, ToolCall } from '../request.js';
import type { Message, Part } from './schema.js';

/** Throws RequestError on unsupported parts, calls without a function, results of unknown calls, and missing members. */
export function normaliseMessages(messages: readonly Message[], images: ImageReader): readonly ChatMessage[] {
  const functionNameByCallId = new Map<string, string>();
  return messages.map((message, index) => {
    const path = `messages[${index}]`;
    if (isPresent(message.audio)) rejectUnsupported(`${path}.audio`, `${path}.audio is not supported.`);
    switch (message.role) {
      case 'system':
      case 'developer':
        return { role: 'system', content: textContentOf(message, path) };
      case 'user':
        return { role: 'user', content: contentOf(message, path, images) };
      case 'assistant': {
        const toolCalls = [
          ...(message.tool_calls ?? []).map((call, position) => toolCallOf(call, `${path}.tool_calls[${position}]`)),
          ...functionCallOf(message, index),
        ];
        for (const { id, name } of toolCalls) functionNameByCallId.set(id, name);
        return { role: 'assistant', content: textContentOf(message, path), reasoning: message.reasoning_content || null, toolCalls };
      }
      case 'tool': {
        const toolCallId = message.tool_call_id || rejectInvalid(`${path}.tool_call_id`, `${path}.tool_call_id is required.`);
        const name = functionNameByCallId.get(toolCallId);
        if (name === undefined) {
          const field = `${path}.tool_call_id`;
          return rejectInvalid(field, `${field} must be the id of a call in the tool_calls of an earlier assistant message.`);
        }
        return { role: 'tool', content: contentOf(message, path, images), toolCallId, name, isError: false };
      }
      case 'function': {
        const name = message.name || rejectInvalid(`${path}.name`, `${path}.name is required.`);
        const toolCallId = lastCallOf(name, functionNameByCallId);
        return { role: 'tool', content: textContentOf(message, path), toolCallId, name, isError: false };
      }
      default:
        return message.role satisfies never;
    }
  });
}

function toolCallOf(call: NonNullable<Message['tool_calls']>[number], path: string): ToolCall {
  if (call.function === undefined) {
    if ((call.type ?? 'function') === 'function') return rejectInvalid(`${path}.function`, `${path}.function is required.`);
    return rejectUnsupported(path, `${path} must be a call of type "function".`);
  }
  return { id: call.id, name: call.function.name, arguments: call.function.arguments };
}

/** Call in the legacy member `function_call`, which has no id: the id is made of the message index. */
function functionCallOf({ function_call: call }: Message, index: number): ToolCall[] {
  return isPresent(call) ? [{ id: `call_${index}`, name: call.name, arguments: call.arguments }] : [];
}

/** Id of the last call of a function; the function's name if there was no call. */
function lastCallOf(name: string, functionNameByCallId: ReadonlyMap<string, string>): string {
  return [...functionNameByCallId].findLast(([, called]) => called === name)?.[0] ?? name;
}

/** Content of `user` and `tool` messages, which may contain images. */
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
        return rejectInvalid(`${path}.image_url`, `${path}.image_url must be an object with a url.`);
      }
      return images.atUrl(image.url, detailOf(image.detail, `${path}.image_url`), path);
    }
    case 'file':
      if (!isJsonObject(part.file)) return rejectInvalid(`${path}.file`, `${path}.file must be an object with file_data.`);
      return imageInFile(part.file, images, path);
    default:
      return { type: 'text', text: textOf(part, path) };
  }
}

/** Content of the other roles: text only. Absent content of assistant messages becomes the refusal or ''. */
function textContentOf(message: Message, path: string): string {
  const { content } = message;
  const field = `${path}.content`;
  if (typeof content === 'string') return content;
  if (isPresent(content)) {
    return content.map((part, index) => refusalTextOf(part, message) ?? onlyTextOf(part, message, `${field}[${index}]`)).join('\n');
  }
  if (message.role === 'assistant') return message.refusal ?? '';
  return rejectInvalid(field, `${field} is required.`);
}

/** Text of an assistant's refusal part; null for other parts and roles. */
function refusalTextOf(part: Part, { role }: Message): string | null {
  return role === 'assistant' && part.type === 'refusal' ? (part.refusal ?? null) : null;
}

function onlyTextOf(part: Part, { role }: Message, path: string): string {
  if (part.type === 'image_url' || part.type === 'file')
    rejectUnsupported(
      path,
      `${path}: images and files are not allowed in messages of the role "${role}", only in those of "user" and "tool".`,
    );
  return textOf(part, path);
}

function textOf(part: Part, path: string): string {
  if (part.type !== 'text')
    rejectUnsupported(path, `${path} must be text, or an image in a message of "user" or "tool". Audio and other files are not supported.`);
  return part.text ?? rejectInvalid(`${path}.text`, `${path}.text is required.`);
}
