/** Whether a request uses prompt caching: `cache_control` at the top, in a tool, or in a block of the system prompt or of a message. */
import type { MessagesRequest } from './schema.js';

export function usesCacheControl(body: MessagesRequest): boolean {
  return (
    isMarked(body) ||
    (body.tools ?? []).some(isMarked) ||
    isAnyBlockMarked(body.system) ||
    body.messages.some((message) => isMarked(message) || isAnyBlockMarked(message.content))
  );
}

/** Blocks may hold blocks, as tool results do. */
function isAnyBlockMarked(content: unknown): boolean {
  if (!Array.isArray(content)) return false;
  return content.some((block: unknown) => isMarked(block) || isAnyBlockMarked((block as { content?: unknown } | null)?.content));
}

function isMarked(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'cache_control' in value && value.cache_control != null;
}
