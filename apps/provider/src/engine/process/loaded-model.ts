/**
 * `LoadedModel`: a loaded model with its context, as `Runtime` uses it. `loadPrompt` creates the parts that render prompts.
 *
 * `loadModel` (text) and `loadVisionModel` create it with different native libraries.
 */
import { DEFAULT_THINK_TAGS } from '@inference/formats';
import type { Token } from 'node-llama-cpp';
import { type ThinkTags, thinkTagsOf } from '../../models/think-tags.js';
import type { PromptInput } from '../messages.js';
import type { Repeatability } from './decoding/repeatability.js';
import type { NativeContext, NativeSamplers } from './native.js';
import type { StreamControl } from './output/text-stream.js';
import { Vocabulary, type VocabularySource } from './output/token-text.js';
import { CHATML_TEMPLATE, ChatPrompt, type PromptModel } from './prompt/chat-prompt.js';
import type { PromptImages } from './prompt/prompt-images.js';
import { type Tokenize, tokenizerOf } from './prompt/tokenizer.js';

export interface LoadedModel extends LoadedPrompt {
  readonly build: string;
  /** Sequences that the context can decode concurrently. */
  readonly slots: number;
  /** Tokens of one sequence. */
  readonly contextSize: number;
  /** Maximum tokens of one batch. */
  readonly batchTokens: number;
  /** Positions of the attention's sliding window. Null with full attention. */
  readonly window: number | null;
  readonly native: NativeContext;
  readonly samplers: NativeSamplers;
  readonly repeatability: Repeatability;
  /** Whether speculative decoding is enabled, and the cache can drop rejected tokens, which recurrent states cannot. */
  readonly canDraft: boolean;
  readonly usesGpu: boolean;
  /** Whether the token ends a generation. */
  readonly isEnd: (token: Token) => boolean;
  /** Null for a text-only model. */
  readonly vision: VisionReader | null;
}

export interface VisionReader {
  readonly maxImageTokens: number;
  /**
   * Decodes the images of a prompt. After a cancel, returns only those decoded so far, or none. Throws `ImageError`, and
   * `PromptTooLong` if the images fill the context.
   */
  prepare(prompt: PromptInput, request: ImageRequest): Promise<PromptImages>;
}

export interface ImageRequest {
  /** Cache scope. Requests of one scope wait for each other if their images would take too much memory. */
  readonly scope: string | null;
  readonly control: Pick<StreamControl, 'cancelled' | 'onChange'>;
}

export interface LoadedPrompt {
  readonly vocabulary: Vocabulary;
  readonly prompt: ChatPrompt;
  readonly tokenize: Tokenize;
}

interface LoadPromptOptions {
  readonly vocabularySource: VocabularySource;
  /** Null if the model file contains no chat template. */
  readonly template: string | null;
  readonly tokenize: Tokenize;
  readonly isBytePair: boolean;
  readonly tokens: PromptModel['tokens'];
}

/** Throws an Error whose message is meant for the Mac's owner. */
export function loadPrompt(options: LoadPromptOptions): LoadedPrompt {
  const { template, tokens, vocabularySource } = options;
  const tags = thinkTagsOf(template);
  // A model may think although its template has no think tags. The daemon then looks for the default tags, which must be printed.
  const { open, close } = tags ?? DEFAULT_THINK_TAGS;
  const vocabulary = new Vocabulary(vocabularySource, [open, close]);
  if (template === null && !vocabulary.hasToken('<|im_start|>')) {
    throw new Error('the model file contains no chat template, and its vocabulary has no ChatML tokens to fall back to');
  }
  const controls = vocabulary.controlTexts();
  const tokenize = tokenizerOf(options.tokenize, options.isBytePair, controls);
  const prompt = chatPrompt({ tokenize, tokens }, template ?? CHATML_TEMPLATE, controls, tags);
  return { vocabulary, prompt, tokenize };
}

function chatPrompt(model: PromptModel, template: string, controls: readonly string[], tags: ThinkTags | null): ChatPrompt {
  let prompt: ChatPrompt;
  try {
    prompt = new ChatPrompt(model, template, controls, tags);
  } catch {
    throw new Error("the model's chat template is not valid Jinja");
  }
  if (!prompt.rendersGreeting()) throw new Error("the model's chat template cannot be rendered, not even with one message in it");
  return prompt;
}
