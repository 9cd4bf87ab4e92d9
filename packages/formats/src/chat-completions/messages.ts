/** Messages of a chat request, normalised: one role vocabulary, and content as one text. */
import { RequestError } from '../errors.js';
import type { ChatMessage } from '../format.js';
import { isFilled, isGiven, refuse } from './refusals.js';
import type { Message, Part } from './schema.js';

/** Throws RequestError for parts that are no text, tool calls, and content that is missing. */
export function normaliseMessages(messages: readonly Message[]): readonly ChatMessage[] {
  return messages.map((message, index) => {
    const path = `messages[${index}]`;
    if (isFilled(message.tool_calls)) refuse(`${path}.tool_calls`, `${path}.tool_calls are not supported yet.`);
    if (isGiven(message.function_call)) refuse(`${path}.function_call`, `${path}.function_call is not supported.`);
    if (isGiven(message.audio)) refuse(`${path}.audio`, `${path}.audio is not supported.`);
    return { role: message.role === 'developer' ? 'system' : message.role, content: contentOf(message, `${path}.content`) };
  });
}

function contentOf(message: Message, path: string): string {
  const { content } = message;
  if (typeof content === 'string') return content;
  if (isGiven(content)) return content.map((part, index) => textOf(part, `${path}[${index}]`)).join('\n');
  // The format allows an assistant turn without text; any other message is nothing without it.
  if (message.role === 'assistant') return '';
  throw new RequestError('invalid_request', path, `${path} is required.`);
}

function textOf(part: Part, path: string): string {
  if (part.type !== 'text') refuse(path, `${path} must be a part of type "text". Other parts (images, audio, files) are not supported.`);
  if (part.text === undefined) throw new RequestError('invalid_request', `${path}.text`, `${path}.text is required.`);
  return part.text;
}
