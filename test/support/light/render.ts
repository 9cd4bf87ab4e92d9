/** Renders a script as a response, by the format of the request. */
import { setTimeout as pause } from 'node:timers/promises';
import type { OutputEvent, ParsedRequest, ResponseMetadata } from '@inference/formats';
import { PROMPT_TOKENS, type Script, wordOf } from './script.js';

export interface RenderOptions {
  readonly parsed: ParsedRequest;
  readonly script: Script;
  readonly responseMetadata: ResponseMetadata;
  readonly stream: boolean;
  readonly write: (text: string) => Promise<void>;
  readonly hasWritten: () => boolean;
  /** Abort ends the response after the words written so far. */
  readonly closing: AbortSignal;
  /** Counts the words. */
  readonly counter: { tokens: number };
}

/** Returns `cut` if `closing` aborted after some output, `nothing` if before any. */
export async function renderScript(options: RenderOptions): Promise<'whole' | 'cut' | 'nothing'> {
  const { parsed, script, responseMetadata, write, closing, counter } = options;
  const words = parsed.request.task === 'count' ? 0 : script.words;
  const stream = options.stream ? parsed.answer.stream(responseMetadata) : null;
  const plain = options.stream ? null : parsed.answer.plain(responseMetadata);
  const emit = async (event: OutputEvent): Promise<void> => {
    if (stream !== null) await write(stream.render(event));
    else plain?.add(event);
  };
  await emit({ type: 'start', promptTokens: PROMPT_TOKENS });
  for (let index = 0; index < words; index++) {
    if (script.everyMs !== undefined) await pause(script.everyMs, undefined, { signal: closing }).catch(() => {});
    if (closing.aborted) return options.hasWritten() ? 'cut' : 'nothing';
    counter.tokens++;
    await emit({ type: 'text', text: wordOf(script, index) });
  }
  const usage = { prompt_tokens: PROMPT_TOKENS, completion_tokens: counter.tokens, total_tokens: PROMPT_TOKENS + counter.tokens };
  await emit({ type: 'finish', reason: 'stop', usage, hiddenTokens: 0 });
  if (plain !== null) await write(plain.body());
  return 'whole';
}
