/** `loadModel` loads a text model, creates its context and measures the context's repeatability. */
import { DEFAULT_THINK_TAGS } from '@inference/formats';
import type { LlamaContext, LlamaModel } from 'node-llama-cpp';
import { type ThinkTags, thinkTagsOf } from '../../models/think-tags.js';
import type { EngineSettings } from '../messages.js';
import { findRepeatability, type Repeatability } from './decoding/repeatability.js';
import { loadWeights } from './load-weights.js';
import { type NativeContext, nativeContext } from './native.js';
import { Vocabulary, type VocabularySource } from './output/token-text.js';
import { CHATML_TEMPLATE, ChatPrompt, type PromptModel } from './prompt/chat-prompt.js';
import { type Tokenize, tokenizerOf } from './prompt/tokenizer.js';

export interface LoadedModel {
  readonly model: LlamaModel;
  readonly context: LlamaContext;
  readonly native: NativeContext;
  readonly repeatability: Repeatability;
  readonly vocabulary: Vocabulary;
  readonly prompt: ChatPrompt;
  readonly tokenize: Tokenize;
  /** Whether drafts are wanted, and the model's cache can drop the last tokens of a sequence; recurrent states cannot. */
  readonly canDraft: boolean;
}

/** Throws an Error with a message for the owner. */
export async function loadModel(settings: EngineSettings): Promise<LoadedModel> {
  const { model, contextOptions } = await loadWeights(settings);
  const context = await model.createContext({
    contextSize: settings.contextSize,
    sequences: settings.slots,
    ...contextOptions,
  });
  const native = nativeContext(context);
  const template = chatTemplate(model);
  const tags = thinkTagsOf(template);
  // A model may think although its template has no think tags; the output filter then looks for the default tags.
  const { open, close } = tags ?? DEFAULT_THINK_TAGS;
  const vocabulary = new Vocabulary(vocabularySource(model), [open, close]);
  if (template === null && !vocabulary.has('<|im_start|>')) {
    throw new Error('the model file holds no chat template, and its vocabulary has no ChatML tokens to fall back to');
  }
  const controls = vocabulary.controlTexts();
  const tokenize = tokenizerOf(model, controls);
  const prompt = chatPrompt({ tokenize, tokens: model.tokens }, template ?? CHATML_TEMPLATE, controls, tags);
  const mayShare = settings.gpu === 'none' && settings.keepApart !== true;
  const repeatability = await findRepeatability({ context: native, model, sequences: context.totalSequences, mayShare });
  const canDraft = settings.drafts !== false && !model.fileInsights.isRecurrent && !model.fileInsights.isHybrid;
  return { model, context, native, repeatability, vocabulary, prompt, tokenize, canDraft };
}

function vocabularySource(model: LlamaModel): VocabularySource {
  const { tokens, token_type, model: kind } = model.fileInfo.metadata.tokenizer.ggml;
  // A plain token precedes the tested token, so its leading space is not stripped.
  const anchor = model.tokenize('a').slice(-1);
  return { tokens, types: token_type ?? [], kind, detokenize: (token) => model.detokenize([token], false, anchor) };
}

function chatTemplate(model: LlamaModel): string | null {
  const template: unknown = model.fileInfo.metadata.tokenizer.chat_template;
  return typeof template === 'string' && template.trim() !== '' ? template : null;
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
