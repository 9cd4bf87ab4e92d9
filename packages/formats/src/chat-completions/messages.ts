/** Messages of a chat request, normalised: one role vocabulary, and content as one text. */
import { isGiven, refuse, reject } from '../refusal.js';
import type { ChatMessage, ToolCall } from '../request.js';
import type { Message, Part } from './schema.js';

/** Throws RequestError for parts that are no text, calls of no function, and what is missing. */
export function normaliseMessages(messages: readonly Message[]): readonly ChatMessage[] {
  const names = new Map<string, string>();
  return messages.map((message, index) => {
    const path = `messages[${index}]`;
    if (isGiven(message.audio)) refuse(`${path}.audio`, `${path}.audio is not supported.`);
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

/** Legacy calls have no ids; the place of the message makes one. */
function functionCallOf({ function_call: call }: Message, index: number): ToolCall[] {
  return isGiven(call) ? [{ id: `call_${index}`, name: call.name, arguments: call.arguments }] : [];
}

/** Id of the last call of a function, or its name where no call came before. */
function lastCallOf(name: string, names: ReadonlyMap<string, string>): string {
  return [...names].findLast(([, called]) => called === name)?.[0] ?? name;
}

function contentOf(message: Message, path: string): string {
  const { content } = message;
  const field = `${path}.content`;
  if (typeof content === 'string') return content;
  if (isGiven(content)) return content.map((part, index) => refusalOf(part, message) ?? textOf(part, `${field}[${index}]`)).join('\n');
  // The format allows an assistant turn without text; any other message is nothing without it.
  if (message.role === 'assistant') return message.refusal ?? '';
  return reject(field, `${field} is required.`);
}

/** What a model said in place of an answer is its text here. Null for other parts, and those of others. */
function refusalOf(part: Part, { role }: Message): string | null {
  return role === 'assistant' && part.type === 'refusal' ? (part.refusal ?? null) : null;
}

function textOf(part: Part, path: string): string {
  if (part.type !== 'text') refuse(path, `${path} must be a part of type "text". Other parts (images, audio, files) are not supported.`);
  return part.text ?? reject(`${path}.text`, `${path}.text is required.`);
}
