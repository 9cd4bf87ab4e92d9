/** Builds the message object of a Messages response and its parts: content blocks, usage, stop reason. */
import type { ResponseMetadata } from '../format.js';
import type { TranscriptItem } from '../output/transcript.js';
import type { FinishEvent } from '../output-event.js';

export function messageOf({ responseId, model }: ResponseMetadata, content: readonly object[], end: object, usage: object) {
  return { id: responseId, type: 'message', role: 'assistant', model, content, ...end, usage: { ...usage, ...CONSTANT_USAGE } };
}

/** Constant usage members that clients require. */
const CONSTANT_USAGE = {
  cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
  service_tier: 'standard',
} as const;

/** Members about the end of the message; all null until the message ends. */
export function endOf(finish: FinishEvent | null) {
  return {
    stop_reason: finish === null ? null : stopReason(finish),
    stop_sequence: finish?.reason === 'stop' ? (finish.stopSequence ?? null) : null,
    stop_details: null,
    container: null,
  };
}

function stopReason({ reason, stopSequence }: FinishEvent): 'end_turn' | 'max_tokens' | 'stop_sequence' | 'tool_use' {
  switch (reason) {
    case 'stop':
      return stopSequence === undefined ? 'end_turn' : 'stop_sequence';
    case 'length':
      return 'max_tokens';
    case 'tool_calls':
      return 'tool_use';
    default:
      return reason satisfies never;
  }
}

/**
 * Input token counts. As in Anthropic's API, `input_tokens` excludes cached tokens if the request uses `cache_control`. Otherwise
 * clients expect the whole prompt in `input_tokens`.
 */
export function inputUsage(promptTokens: number, cached: number, { usesCacheControl }: CacheReporting) {
  const cachedTokens = usesCacheControl ? cached : 0;
  return { input_tokens: promptTokens - cachedTokens, cache_creation_input_tokens: 0, cache_read_input_tokens: cachedTokens };
}

export function usageOf({ usage, hiddenTokens }: FinishEvent, reporting: CacheReporting) {
  return {
    ...inputUsage(usage.prompt_tokens, usage.cached_tokens ?? 0, reporting),
    output_tokens: usage.completion_tokens,
    output_tokens_details: { thinking_tokens: hiddenTokens },
  };
}

/** Whether cached tokens are reported separately. */
interface CacheReporting {
  /** The request has `cache_control`. */
  readonly usesCacheControl: boolean;
}

/** Content block of an item. Thinking blocks need some `signature`, because clients drop blocks without one. */
export function blockOf(item: TranscriptItem, { responseId }: ResponseMetadata) {
  switch (item.type) {
    case 'text':
      // No `citations`, as in Anthropic's API, because null breaks the AI SDK.
      return { type: 'text', text: item.text };
    case 'reasoning':
      return { type: 'thinking', thinking: item.text, signature: responseId };
    case 'tool_call':
      return { type: 'tool_use', id: item.id, name: item.name, input: inputOf(item.arguments) };
    default:
      return item satisfies never;
  }
}

/** Tool input must be an object, so invalid or truncated arguments become the text of a member `invalid_json`. */
function inputOf(json: string): unknown {
  try {
    const input: unknown = JSON.parse(json === '' ? '{}' : json);
    if (typeof input === 'object' && input !== null && !Array.isArray(input)) return input;
  } catch {
    // Handled below.
  }
  return { invalid_json: json };
}
