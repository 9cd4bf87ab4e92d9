/** `loadVisionModel` loads a language model with its projector (image encoder), and measures the maximum prompt tokens of an image. */
import type { Token } from 'node-llama-cpp';
import type { EngineSettings } from '../messages.js';
import { findRepeatability } from '../process/decoding/repeatability.js';
import { warmUp } from '../process/decoding/warm-up.js';
import { type LoadedModel, type LoadedPrompt, loadPrompt } from '../process/loaded-model.js';
import { isThin, MAX_BITMAP_PIXELS } from './bitmap.js';
import { ImageReader } from './image-reader.js';
import { callAsync, collectErrors, LLAMA_BUILD, type LlamaLibrary, loadLlamaLibrary, type Pointer } from './llama-library.js';
import { NativeVisionContext } from './native-vision-context.js';
import { Projector, type ProjectorSettings } from './projector.js';
import { visionSamplers } from './vision-sampler.js';
import { VisionVocabulary } from './vision-vocabulary.js';

/** Minimum of the maximum tokens of one batch, as in the engine for text models. */
const BATCH_TOKENS = 512;
/** CPU threads while a GPU computes. */
const CPU_THREADS_BESIDE_GPU = 4;
/** Widths and heights of measured images: common tile sizes of projectors, up to the maximum side of an input image. */
const MEASURED_SIDES: readonly number[] = [1, 64, 224, 256, 336, 384, 448, 512, 640, 768, 896, 1024, 1344, 1792, 2048, 2896, 4096, 8000];

/** Value of the enum `ggml_type` in `ggml.h`. */
const GGML_TYPE_Q8_0 = 8;

type VisionSettings = EngineSettings & { readonly projectorPath: string };

/** Throws an Error whose message is meant for the Mac's owner. */
export async function loadVisionModel(settings: VisionSettings): Promise<LoadedModel> {
  const library = loadLlamaLibrary();
  const errors: string[] = [];
  return await collectErrors(library, errors, async () => {
    try {
      return await load(library, settings);
    } catch (error) {
      const [reason] = errors;
      throw reason === undefined
        ? error
        : new Error(`llama.cpp does not load the model or its projector: ${reason.trim().slice(0, 300)}`, { cause: error });
    }
  });
}

async function load(library: LlamaLibrary, settings: VisionSettings): Promise<LoadedModel> {
  const { gpu, slots } = settings;
  library.llama_backend_init();
  const model = await loadWeights(library, settings);
  const vocabulary = new VisionVocabulary(library, library.llama_model_get_vocab(model) as Pointer);
  const prompt = promptOf(library, model, vocabulary);
  const { projector, maxImageTokens } = await loadProjector(library, model, vocabulary, settings);
  // Without a causal order, an image must fit one batch.
  const batchTokens = projector.isNonCausal ? Math.max(BATCH_TOKENS, maxImageTokens) : BATCH_TOKENS;
  const context = await newContext(library, model, settings, batchTokens);
  const native = new NativeVisionContext({ library, context, vocabularySize: vocabulary.size, sequences: slots, batchTokens });
  projector.attach({ native, context, batchTokens });
  const samplers = visionSamplers(library, vocabulary.pointer, vocabulary.size);
  const window = library.llama_model_n_swa(model) as number;
  if (gpu !== 'none') await warmUp(native, vocabulary.size);
  const repeatability = await findRepeatability({
    context: native,
    samplers,
    vocabularySize: vocabulary.size,
    modelSize: (library.llama_model_n_embd(model) as number) * (library.llama_model_n_layer(model) as number),
    sequences: slots,
    mayShare: gpu === 'none' && settings.keepApart !== true,
  });
  const contextSize = library.llama_n_ctx_seq(context) as number;
  return {
    ...prompt,
    build: `llama.cpp ${LLAMA_BUILD} ${deviceOf(gpu)}`,
    slots,
    contextSize,
    batchTokens,
    window: window > 0 ? window : null,
    native,
    samplers,
    repeatability,
    isEnd: (token: Token) => vocabulary.isEnd(token),
    canDraft: settings.drafts !== false && !library.llama_model_is_recurrent(model) && !library.llama_model_is_hybrid(model),
    usesGpu: gpu !== 'none',
    vision: new ImageReader(projector, maxImageTokens, contextSize),
  };
}

function deviceOf(gpu: EngineSettings['gpu']): string {
  return gpu === 'auto' && process.platform === 'darwin' ? 'metal' : 'cpu';
}

async function loadWeights(library: LlamaLibrary, { modelPath, gpu }: VisionSettings): Promise<Pointer> {
  const defaults = library.llama_model_default_params() as Record<string, unknown>;
  const params = gpu === 'none' ? { ...defaults, n_gpu_layers: 0 } : defaults;
  const model = await callAsync<Pointer | null>(library.llama_model_load_from_file, modelPath, params);
  if (model === null) throw new Error('llama.cpp does not load the model');
  return model;
}

function promptOf(library: LlamaLibrary, model: Pointer, vocabulary: VisionVocabulary): LoadedPrompt {
  const template = library.llama_model_chat_template(model, null) as string | null;
  return loadPrompt({
    vocabularySource: vocabulary.source(library, model),
    template: template === null || template.trim() === '' ? null : template,
    tokenize: (text, special) => vocabulary.tokenize(text, special),
    isBytePair: vocabulary.isBytePair,
    tokens: vocabulary.tokens,
  });
}

/** Loads the projector. Limits an image to half of a sequence's context, if this type of projector supports a limit. */
async function loadProjector(
  library: LlamaLibrary,
  model: Pointer,
  vocabulary: VisionVocabulary,
  settings: VisionSettings,
): Promise<{ readonly projector: Projector; readonly maxImageTokens: number }> {
  const unlimited = await measuredProjector(library, { model, vocabulary, maxImageTokens: null }, settings);
  const limit = Math.floor(settings.contextSize / 2);
  if (unlimited.maxImageTokens <= limit) return unlimited;
  unlimited.projector.free();
  return await measuredProjector(library, { model, vocabulary, maxImageTokens: limit }, settings);
}

async function measuredProjector(
  library: LlamaLibrary,
  options: Pick<ProjectorSettings, 'model' | 'vocabulary' | 'maxImageTokens'>,
  { projectorPath, gpu }: VisionSettings,
) {
  const projector = await Projector.load(library, { ...options, path: projectorPath, useGpu: gpu === 'auto', threads: threadsOf(gpu) });
  if (projector === null) throw new Error('llama.cpp does not load the image projector');
  let maxImageTokens = 0;
  for (const width of MEASURED_SIDES) {
    for (const height of MEASURED_SIDES) {
      if (width * height > MAX_BITMAP_PIXELS || isThin(width, height)) continue;
      maxImageTokens = Math.max(maxImageTokens, await projector.count(width, height));
    }
  }
  if (maxImageTokens === 0) throw new Error('llama.cpp cannot preprocess images for the projector');
  return { projector, maxImageTokens };
}

async function newContext(
  library: LlamaLibrary,
  model: Pointer,
  { contextSize, slots, kvCacheType = 'f16', gpu }: VisionSettings,
  batchTokens: number,
): Promise<Pointer> {
  const params = {
    ...(library.llama_context_default_params() as Record<string, unknown>),
    n_ctx: contextSize * slots,
    n_batch: batchTokens,
    n_ubatch: batchTokens,
    n_seq_max: slots,
    n_threads: threadsOf(gpu),
    n_threads_batch: threadsOf(gpu),
    swa_full: false,
    ...(kvCacheType === 'f16' ? {} : { type_k: GGML_TYPE_Q8_0, type_v: GGML_TYPE_Q8_0 }),
    ...(gpu === 'none' ? { offload_kqv: false, op_offload: false } : {}),
  };
  const context = await callAsync<Pointer | null>(library.llama_init_from_model, model, params);
  if (context === null) throw new Error('llama.cpp cannot allocate the context');
  return context;
}

/** Without a GPU one thread, because two compute threads that share a core are ten times slower than one. */
function threadsOf(gpu: EngineSettings['gpu']): number {
  return gpu === 'none' ? 1 : CPU_THREADS_BESIDE_GPU;
}
