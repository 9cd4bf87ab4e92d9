/** The demo model and an engine on it, shared by the tests that need real decoding. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Engine, type EngineOptions } from '../src/engine/engine.js';
import type { Generation, Outcome } from '../src/engine/generation.js';
import type { ChatInput, GenerationRequest, PromptMessage, Sampling } from '../src/engine/messages.js';

const MODEL = fileURLToPath(new URL('../demo-models/pico/pico.gguf', import.meta.url));

export function demoModel(): string {
  if (!existsSync(MODEL)) throw new Error('the demo model is missing from apps/provider/demo-models/pico');
  return MODEL;
}

export const greedy: Sampling = {
  temperature: 0,
  topP: null,
  topK: null,
  minP: null,
  logitBias: [],
  seed: null,
  frequencyPenalty: 0,
  presencePenalty: 0,
};

export function startDemoEngine(slots: number, options: Partial<EngineOptions> = {}, contextSize = 512): Promise<Engine> {
  return Engine.start({ ...options, settings: { modelPath: demoModel(), slots, contextSize, gpu: 'none' } });
}

export function ask(text: string, maxTokens = 60, sampling: Partial<Sampling> = {}): GenerationRequest {
  return {
    prompt: conversation([{ role: 'user', content: text }]),
    maxTokens,
    grammar: null,
    logprobs: null,
    cacheScope: null,
    sampling: { ...greedy, ...sampling },
  };
}

export function conversation(messages: readonly PromptMessage[], changes: Partial<ChatInput> = {}): ChatInput {
  return { type: 'chat', messages, tools: [], continuesLast: false, thinking: null, skipsThinking: false, ...changes };
}

/** Reads a stream to its end. */
export async function collect(generation: Generation): Promise<Outcome & { text: string; tokens: number }> {
  let text = '';
  let tokens = 0;
  for await (const batch of generation) {
    for (const piece of batch) {
      text += piece.text;
      tokens += piece.tokens;
    }
  }
  return { ...generation.outcome(), text, tokens };
}
