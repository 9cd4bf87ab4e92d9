/**
 * Loads a model and makes its contexts: one whose streams decode together, and one of a single stream for requests with
 * a seed. Batch composition changes floating point results, so the seeded lane shares its batches with nobody.
 */
import { getLlama, type LlamaContext, LlamaLogLevel, type LlamaModel } from 'node-llama-cpp';
import { type ThinkTags, thinkTagsOf } from '../../models/think-tags.js';
import type { EngineSettings } from '../messages.js';
import { CHATML_TEMPLATE, ChatPrompt } from './chat-prompt.js';
import { Vocabulary, type VocabularySource } from './token-text.js';

export interface LoadedModel {
  readonly model: LlamaModel;
  readonly shared: LlamaContext;
  readonly seeded: LlamaContext;
  readonly vocabulary: Vocabulary;
  readonly prompt: ChatPrompt;
}

/** Throws an Error whose message is for the owner. */
export async function loadModel(settings: EngineSettings): Promise<LoadedModel> {
  const onProcessor = settings.gpu === 'none';
  const llama = await getLlama({
    gpu: onProcessor ? false : 'auto',
    build: 'never',
    progressLogs: false,
    logLevel: LlamaLogLevel.error,
    // A decode uses one thread where there is no GPU (two that share a core are ten times slower); the other is for the
    // seeded lane, which decodes beside the shared context.
    ...(onProcessor ? { maxThreads: 2 } : {}),
  });
  const model = await llama.loadModel({ modelPath: settings.modelPath });
  const threads = onProcessor ? { threads: 1 } : {};
  const shared = await model.createContext({ contextSize: settings.contextSize, sequences: settings.slots, ...threads });
  const seeded = await model.createContext({ contextSize: shared.contextSize, sequences: 1, ...threads });
  const template = chatTemplate(model);
  const tags = thinkTagsOf(template);
  const vocabulary = new Vocabulary(vocabularySource(model), tags === null ? [] : [tags.open, tags.close]);
  if (template === null && !vocabulary.has('<|im_start|>')) {
    throw new Error('the model file holds no chat template, and its vocabulary has no ChatML tokens to fall back to');
  }
  const prompt = chatPrompt(model, template ?? CHATML_TEMPLATE, vocabulary, tags);
  return { model, shared, seeded, vocabulary, prompt };
}

function vocabularySource(model: LlamaModel): VocabularySource {
  const { tokens, token_type, model: kind } = model.fileInfo.metadata.tokenizer.ggml;
  // A plain token stands before the one in question, so that its leading space is not stripped.
  const anchor = model.tokenize('a').slice(-1);
  return { tokens, types: token_type ?? [], kind, detokenize: (token) => model.detokenize([token], false, anchor) };
}

function chatTemplate(model: LlamaModel): string | null {
  const template: unknown = model.fileInfo.metadata.tokenizer.chat_template;
  return typeof template === 'string' && template.trim() !== '' ? template : null;
}

function chatPrompt(model: LlamaModel, template: string, vocabulary: Vocabulary, tags: ThinkTags | null): ChatPrompt {
  try {
    return new ChatPrompt(model, template, vocabulary.controlTexts(), tags);
  } catch {
    throw new Error("the model's chat template is not valid Jinja");
  }
}
