/**
 * `promptOf` converts system prompt and messages of the Messages format to the internal `Prompt`.
 *
 * Tool results in a user message become separate messages before the user's text.
 */
import { rejectInvalid } from '../errors/reject.js';
import type { ImageReader } from '../input-images/image-reader.js';
import { joinedContent } from '../message-content.js';
import type { ChatMessage, ContentPart, Prompt, ToolCall } from '../request.js';
import { asContent, type Content, contentOfBlocks, contentPartOf, textOfBlock, textOfContent } from './blocks.js';
import type { Block, CountTokensRequest, Message } from './schema.js';
import { isToolChange } from './tool-changes.js';

/** Treatment of a tool result whose call is in no earlier message. */
export type OrphanedResults = 'reject' | 'accept';

/** If the last message is from the assistant, the model continues that message. Throws RequestError, which names the block. */
export function promptOf(body: CountTokensRequest, images: ImageReader, orphanedResults: OrphanedResults): Prompt {
  const messages = conversationOf(body, images, orphanedResults);
  const last = messages.at(-1) ?? rejectInvalid('messages', 'messages must hold something to answer.');
  const continuesLast = last.role === 'assistant';
  if (continuesLast && last.toolCalls.length > 0)
    rejectInvalid('messages', 'messages must not end with a call of a tool: its result is missing.');
  return { type: 'chat', messages, continuesLast };
}

function conversationOf(
  { system, messages }: CountTokensRequest,
  images: ImageReader,
  orphanedResults: OrphanedResults,
): readonly ChatMessage[] {
  const toolNameByCallId = new Map<string, string>();
  const conversation: ChatMessage[] = [];
  const instructions = textOfContent(system ?? '', 'system');
  if (instructions !== '') conversation.push({ role: 'system', content: instructions });
  const lastUser = messages.findLastIndex(({ role }) => role === 'user');
  for (const [index, message] of messages.entries()) {
    const path = `messages[${index}].content`;
    switch (message.role) {
      case 'system':
        if (message.clear_at !== 'next_user_message' || index > lastUser) conversation.push(...systemTurn(message, path));
        break;
      case 'user':
        conversation.push(...userTurn(contentOf(message, path), path, { toolNameByCallId, images, orphanedResults }));
        break;
      case 'assistant':
        conversation.push(assistantTurn(contentOf(message, path), path, toolNameByCallId));
        break;
      default:
        message.role satisfies never;
    }
  }
  return conversation;
}

function contentOf({ content }: Message, path: string): Content {
  return content ?? rejectInvalid(path, `${path} is required.`);
}

/** System message without tool changes (see `tool-changes.ts`). A message without other blocks is dropped. */
function systemTurn({ content = [] }: Message, path: string): ChatMessage[] {
  if (typeof content === 'string') return [{ role: 'system', content }];
  const texts = content.flatMap((block, index) => (isToolChange(block) ? [] : [textOfBlock(block, `${path}[${index}]`)]));
  return texts.length === 0 ? [] : [{ role: 'system', content: texts.join('\n') }];
}

interface UserContext {
  readonly toolNameByCallId: ReadonlyMap<string, string>;
  readonly images: ImageReader;
  readonly orphanedResults: OrphanedResults;
}

function userTurn(content: Content, path: string, context: UserContext): ChatMessage[] {
  if (typeof content === 'string') return [{ role: 'user', content }];
  if (content.length === 0) rejectInvalid(path, `${path} must not be empty.`);
  const results: ChatMessage[] = [];
  const parts: ContentPart[] = [];
  for (const [index, block] of content.entries()) {
    const at = `${path}[${index}]`;
    if (block.type === 'tool_result') results.push(toolResult(block, at, context));
    else parts.push(contentPartOf(block, at, context.images));
  }
  return parts.length === 0 ? results : [...results, { role: 'user', content: joinedContent(parts) }];
}

function toolResult(block: Block, path: string, { toolNameByCallId, images, orphanedResults }: UserContext): ChatMessage {
  const toolCallId = block.tool_use_id ?? rejectInvalid(`${path}.tool_use_id`, `${path}.tool_use_id is required.`);
  const content = contentOfBlocks(asContent(block.content, `${path}.content`), `${path}.content`, images);
  if (orphanedResults === 'reject' && !toolNameByCallId.has(toolCallId)) {
    rejectInvalid(`${path}.tool_use_id`, `${path}.tool_use_id must be the id of a tool_use block in an earlier assistant message.`);
  }
  return { role: 'tool', content, toolCallId, name: toolNameByCallId.get(toolCallId) ?? null, isError: block.is_error ?? false };
}

function assistantTurn(content: Content, path: string, toolNameByCallId: Map<string, string>): ChatMessage {
  if (typeof content === 'string') return { role: 'assistant', content, reasoning: null, toolCalls: [] };
  const texts: string[] = [];
  const thoughts: string[] = [];
  const toolCalls: ToolCall[] = [];
  for (const [index, block] of content.entries()) {
    const at = `${path}[${index}]`;
    switch (block.type) {
      case 'thinking':
        if (block.thinking) thoughts.push(block.thinking);
        break;
      case 'redacted_thinking':
        // Encrypted by another service, so not readable.
        break;
      case 'tool_use': {
        const call = toolUse(block, at);
        toolNameByCallId.set(call.id, call.name);
        toolCalls.push(call);
        break;
      }
      default:
        texts.push(textOfBlock(block, at));
    }
  }
  const reasoning = thoughts.length === 0 ? null : thoughts.join('\n');
  return { role: 'assistant', content: texts.join('\n'), reasoning, toolCalls };
}

function toolUse(block: Block, path: string): ToolCall {
  const id = block.id ?? rejectInvalid(`${path}.id`, `${path}.id is required.`);
  const name = block.name ?? rejectInvalid(`${path}.name`, `${path}.name is required.`);
  return { id, name, arguments: JSON.stringify(block.input ?? {}) };
}
