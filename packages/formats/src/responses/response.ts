/** Builds the response object of the Responses format and its items, with all members that Open Responses requires. */
import type { ResponseMetadata } from '../format.js';
import type { TranscriptItem } from '../output/transcript.js';
import type { FinishEvent, TokenLogprob } from '../output-event.js';
import type { ResponsesEcho } from './echo.js';

export type ItemStatus = 'in_progress' | 'completed' | 'incomplete';

/** `finish` is null while the response is in progress. */
export function responseOf(responseMetadata: ResponseMetadata, echo: ResponsesEcho, finish: FinishEvent | null, output: readonly object[]) {
  const cut = finish?.reason === 'length';
  return {
    id: responseMetadata.responseId,
    object: 'response',
    created_at: responseMetadata.created,
    completed_at: cut ? null : (finish?.completedAt ?? null),
    status: finish === null ? 'in_progress' : cut ? 'incomplete' : 'completed',
    error: null,
    incomplete_details: cut ? { reason: 'max_output_tokens' } : null,
    model: responseMetadata.model,
    output,
    usage: finish === null ? null : usageOf(finish),
    ...echo,
  };
}

function usageOf({ usage, hiddenTokens }: FinishEvent) {
  return {
    input_tokens: usage.prompt_tokens,
    // The official SDKs require `cache_write_tokens`. Cache writes have no price of their own here.
    input_tokens_details: { cached_tokens: usage.cached_tokens ?? 0, cache_write_tokens: 0 },
    output_tokens: usage.completion_tokens,
    output_tokens_details: { reasoning_tokens: hiddenTokens },
    total_tokens: usage.total_tokens,
  };
}

const ID_PREFIX = { text: 'msg_', reasoning: 'rs_', tool_call: 'fc_' } as const;

/** Item id, made of the response id and the item's index. */
export function itemId(item: TranscriptItem, index: number, { responseId }: ResponseMetadata): string {
  return `${ID_PREFIX[item.type]}${responseId.slice(responseId.indexOf('_') + 1)}_${index}`;
}

/** Output item. An item in progress has no content yet. */
export function outputItem(item: TranscriptItem, id: string, status: ItemStatus) {
  switch (item.type) {
    case 'text':
      return { id, type: 'message', status, role: 'assistant', content: status === 'in_progress' ? [] : [partOf(item)] };
    case 'reasoning':
      return { id, type: 'reasoning', status, summary: [], content: status === 'in_progress' ? [] : [partOf(item)] };
    case 'tool_call':
      return { id, type: 'function_call', status, call_id: item.id, name: item.name, arguments: item.arguments };
    default:
      return item satisfies never;
  }
}

/** The only content part of a message or reasoning item. */
export function partOf(item: Exclude<TranscriptItem, { type: 'tool_call' }>) {
  return item.type === 'text' ? textPart(item.text, item.logprobs) : { type: 'reasoning_text', text: item.text };
}

function textPart(text: string, logprobs: readonly TokenLogprob[]) {
  return { type: 'output_text', text, annotations: [], logprobs };
}

/** All items of a finished response. Only the last item can be incomplete. */
export function finalItems(items: readonly TranscriptItem[], responseMetadata: ResponseMetadata, finish: FinishEvent): readonly object[] {
  return items.map((item, index) =>
    outputItem(item, itemId(item, index, responseMetadata), finalStatus(index === items.length - 1, finish)),
  );
}

export function finalStatus(isLast: boolean, { reason }: FinishEvent): ItemStatus {
  return isLast && reason === 'length' ? 'incomplete' : 'completed';
}
