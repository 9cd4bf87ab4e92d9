/** `normaliseMessages` normalizes chat messages: one set of roles, and content as a single text. */
import { isPresent, refuse, reject } from '../errors/refusal.js';
import type { ChatMessage, ToolCall } from '../request.js';
import type { Message, Part } from './schema.js';

/** Throws RequestError for non-text parts, calls of other types than `function`, and missing members. */
export function normaliseMessages(messages: readonly Message[]): readonly ChatMessage[] {
  const names = new Map<string, string>();
  return messages.map((message, index) => {
    const path = `messages[${index}]`;
    if (isPresent(message.audio)) refuse(`${path}.audio`, `${path}.audio is not supported.`);
    switch (message.role) {
      case 'system':
      case 'developer':
        return { role: 'system', content: contentOf(message, path) };
      case 'user':
        return { role: 'user', content: contentOf(message, path) };
      case 'assistant': {
        const toolCalls = [
          ...(message.tool_calls ?? []).map((_, call) => toolCallOf(message, call, path)),
          ...functionCallOf(message, index),
        ];
        for (const { id, name } of toolCalls) names.set(id, name);
        return { role: 'assistant', content: contentOf(message, path), reasoning: message.reasoning_content || null, toolCalls };
      }
      case 'tool': {
        const toolCallId = message.tool_call_id || reject(`${path}.tool_call_id`, `${path}.tool_call_id is required.`);
        const name = names.get(toolCallId) ?? null;
        return { role: 'tool', content: contentOf(message, path), toolCallId, name, isError: false };
      }
      case 'function': {
        const name = message.name || reject(`${path}.name`, `${path}.name is required.`);
        return { role: 'tool', content: contentOf(message, path), toolCallId: lastCallOf(name, names), name, isError: false };
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

/** Legacy calls have no ids; the message index is used instead. */
function functionCallOf({ function_call: call }: Message, index: number): ToolCall[] {
  return isPresent(call) ? [{ id: `call_${index}`, name: call.name, arguments: call.arguments }] : [];
}

/** Id of the last call of a function, or its name if there was no call. */
function lastCallOf(name: string, names: ReadonlyMap<string, string>): string {
  return [...names].findLast(([, called]) => called === name)?.[0] ?? name;
}

function contentOf(message: Message, path: string): string {
  const { content } = message;
  const field = `${path}.content`;
  if (typeof content === 'string') return content;
  if (isPresent(content)) return content.map((part, index) => refusalOf(part, message) ?? textOf(part, `${field}[${index}]`)).join('\n');
  // Only assistant messages may have no text.
  if (message.role === 'assistant') return message.refusal ?? '';
  return reject(field, `${field} is required.`);
}

/** Text of an assistant's refusal part; null for other parts and roles. */
function refusalOf(part: Part, { role }: Message): string | null {
  return role === 'assistant' && part.type === 'refusal' ? (part.refusal ?? null) : null;
}

function textOf(part: Part, path: string): string {
  if (part.type !== 'text') refuse(path, `${path} must be a part of type "text". Other parts (images, audio, files) are not supported.`);
  return part.text ?? reject(`${path}.text`, `${path}.text is required.`);
}
