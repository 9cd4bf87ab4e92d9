/** `loadModel` loads a text model with node-llama-cpp, creates its context and tests in which batches its logits are repeatable. */
import { type Grammar, gbnf } from '@inference/json-schema-grammar/grammar';
import { type LlamaContext, LlamaGrammarEvaluationState, type LlamaModel } from 'node-llama-cpp';
import type { EngineSettings } from '../messages.js';
import { findRepeatability } from './decoding/repeatability.js';
import { GrammarError } from './decoding/sampling.js';
import { warmUp } from './decoding/warm-up.js';
import { buildOf, isBytePair, loadWeights } from './load-weights.js';
import { type LoadedModel, loadPrompt } from './loaded-model.js';
import { type NativeSamplers, nativeContext, nativeGrammar, newSampler } from './native.js';
import type { VocabularySource } from './output/token-text.js';

/** Throws an Error whose message is meant for the Mac's owner. */
export async function loadModel(settings: EngineSettings): Promise<LoadedModel> {
  const { model, contextOptions } = await loadWeights(settings);
  const context = await newContext(model, settings, contextOptions);
  const native = nativeContext(context);
  const samplers = samplersOf(model);
  const prompt = loadPrompt({
    vocabularySource: vocabularySource(model),
    template: chatTemplate(model),
    tokenize: (text, special) => model.tokenize(text, special),
    isBytePair: isBytePair(model),
    tokens: model.tokens,
  });
  const vocabularySize = model.fileInfo.metadata.tokenizer.ggml.tokens.length;
  if (settings.gpu !== 'none') await warmUp(native, vocabularySize);
  const repeatability = await findRepeatability({
    context: native,
    samplers,
    vocabularySize,
    modelSize: model.embeddingVectorSize * model.fileInsights.totalLayers,
    sequences: context.totalSequences,
    mayShare: settings.gpu === 'none' && settings.keepApart !== true,
  });
  return {
    ...prompt,
    build: buildOf(model),
    slots: context.totalSequences,
    contextSize: context.contextSize,
    batchTokens: context.batchSize,
    window: model.fileInsights.swaSize ?? null,
    native,
    samplers,
    repeatability,
    isEnd: (token) => model.isEogToken(token),
    canDraft: settings.drafts !== false && !model.fileInsights.isRecurrent && !model.fileInsights.isHybrid,
    usesGpu: settings.gpu !== 'none',
    vision: null,
  };
}

async function newContext(
  model: LlamaModel,
  { contextSize, slots, kvCacheType = 'f16' }: EngineSettings,
  contextOptions: { readonly threads?: number },
): Promise<LlamaContext> {
  const options = { contextSize, sequences: slots, ...contextOptions };
  if (kvCacheType === 'f16') return await model.createContext(options);
  const type = 'Q8_0';
  try {
    // Lets llama.cpp decide on flash attention; node-llama-cpp's default disables it for some models.
    const quantized = { flashAttention: 'auto', experimentalKvCacheKeyType: type, experimentalKvCacheValueType: type } as const;
    return await model.createContext({ ...options, ...quantized });
  } catch (error) {
    const advice = 'set kv_cache_type = "f16" in config.toml, or a smaller context';
    throw new Error(`llama.cpp cannot create a context with a KV cache of type ${kvCacheType}; ${advice}`, { cause: error });
  }
}

function samplersOf(model: LlamaModel): NativeSamplers {
  return {
    newSampler: (config) => newSampler(model, config),
    grammarState: async (grammar) => nativeGrammar(await grammarState(model, grammar)),
  };
}

async function grammarState(model: LlamaModel, grammar: Grammar): Promise<LlamaGrammarEvaluationState> {
  try {
    return new LlamaGrammarEvaluationState({ model, grammar: await model.llama.createGrammar({ grammar: gbnf(grammar) }) });
  } catch {
    throw new GrammarError();
  }
}

function vocabularySource(model: LlamaModel): VocabularySource {
  const { tokens, token_type, model: kind } = model.fileInfo.metadata.tokenizer.ggml;
  // A token before the detokenised one, because the library strips the leading space of the first token.
  const preceding = model.tokenize('a').slice(-1);
  return { tokens, types: token_type ?? [], kind, detokenize: (token) => model.detokenize([token], false, preceding) };
}

function chatTemplate(model: LlamaModel): string | null {
  const template: unknown = model.fileInfo.metadata.tokenizer.chat_template;
  return typeof template === 'string' && template.trim() !== '' ? template : null;
}
