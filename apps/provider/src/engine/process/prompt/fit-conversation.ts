/**
 * `fitConversation` rewrites a conversation for a chat template that rejects or drops system messages, an order of roles, or tools.
 *
 * The contents of all messages are kept. Pure.
 */
import { DEFAULT_TOOL_CALL_TAGS } from '@inference/formats';
import type { PromptTool, TemplateMessage } from '../../messages.js';
import type { TemplateRequirements } from './template-requirements.js';

export interface Conversation {
  readonly messages: readonly TemplateMessage[];
  readonly tools: readonly PromptTool[];
}

export function fitConversation(conversation: Conversation, requirements: TemplateRequirements): Conversation {
  const { messages, tools } = requirements.tools === 'template' ? conversation : toolsAsText(conversation);
  const placed = withSystem(messages, requirements.system);
  const opened = requirements.mustStartWithUser ? userFirst(placed) : placed;
  return { messages: requirements.mustAlternate ? alternateRoles(opened) : opened, tools };
}

/** Writes tools, calls and results as text, in the tags of the Hermes and Qwen families, for templates without tool support. */
function toolsAsText({ messages, tools }: Conversation): Conversation {
  const converted: TemplateMessage[] = [];
  for (const [index, message] of messages.entries()) {
    const { role, content, reasoning_content, tool_calls = [] } = message;
    const last = converted.at(-1);
    if (role === 'tool') {
      const result = `<tool_response>\n${content}\n</tool_response>`;
      const isNext = last !== undefined && messages[index - 1]?.role === 'tool';
      if (isNext) converted[converted.length - 1] = { ...last, content: `${last.content}\n${result}` };
      else converted.push({ role: 'user', content: result });
    } else if (tool_calls.length > 0) {
      const calls = tool_calls.map(({ function: called }) => callText(called.name, called.arguments));
      const thought = reasoning_content === undefined ? {} : { reasoning_content };
      converted.push({ role, content: [...(content === '' ? [] : [content]), ...calls].join('\n'), ...thought });
    } else converted.push(message);
  }
  if (tools.length === 0) return { messages: converted, tools };
  return { messages: systemFirst([...converted, { role: 'system', content: toolsText(tools) }]), tools: [] };
}

function callText(name: string, args: unknown): string {
  const { open, close } = DEFAULT_TOOL_CALL_TAGS;
  const written = typeof args === 'string' ? args : JSON.stringify(args);
  return `${open}\n{"name": ${JSON.stringify(name)}, "arguments": ${written}}\n${close}`;
}

function toolsText(tools: readonly PromptTool[]): string {
  const { open, close } = DEFAULT_TOOL_CALL_TAGS;
  return `# Tools

These functions can be called to answer the user, several at once where that helps:
<tools>
${tools.map((tool) => JSON.stringify(tool)).join('\n')}
</tools>

A call is a JSON object of the function's name and its arguments, with ${open} before it and ${close} after it:
${open}
{"name": "<its name>", "arguments": {<its arguments>}}
${close}`;
}

/** Moves system messages to the start, or into the first user message. */
function withSystem(messages: readonly TemplateMessage[], place: TemplateRequirements['system']): readonly TemplateMessage[] {
  if (place === 'anywhere' || !messages.some(({ role }) => role === 'system')) return messages;
  const [system, ...others] = systemFirst(messages);
  if (place === 'first' || system === undefined) return [...(system === undefined ? [] : [system]), ...others];
  const [first, ...rest] = others;
  if (first?.role !== 'user') return [{ role: 'user', content: system.content }, ...others];
  return [{ ...first, content: `${system.content}\n\n${first.content}` }, ...rest];
}

/** Joins all system messages into a single message at the start. */
function systemFirst(messages: readonly TemplateMessage[]): TemplateMessage[] {
  const system = messages.filter(({ role }) => role === 'system').map(({ content }) => content);
  return [{ role: 'system', content: system.join('\n\n') }, ...messages.filter(({ role }) => role !== 'system')];
}

/** Inserts an empty user message before the first turn if that is not the user's. */
function userFirst(messages: readonly TemplateMessage[]): readonly TemplateMessage[] {
  const at = messages.findIndex(({ role }) => role !== 'system');
  const start = at === -1 ? messages.length : at;
  return messages[start]?.role === 'user'
    ? messages
    : [...messages.slice(0, start), { role: 'user', content: '' }, ...messages.slice(start)];
}

/** Merges neighbouring user messages, and neighbouring assistant messages without tool calls. */
function alternateRoles(messages: readonly TemplateMessage[]): TemplateMessage[] {
  const turns: TemplateMessage[] = [];
  for (const message of messages) {
    const last = turns.at(-1);
    const isSame = last?.role === message.role && (message.role === 'user' || message.role === 'assistant');
    const isPlain = last?.tool_calls === undefined && message.tool_calls === undefined;
    if (last !== undefined && isSame && isPlain) turns[turns.length - 1] = { ...last, content: `${last.content}\n\n${message.content}` };
    else turns.push(message);
  }
  return turns;
}
