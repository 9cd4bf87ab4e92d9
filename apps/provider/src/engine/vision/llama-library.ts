/**
 * `LlamaLibrary`: functions of llama.cpp's C API (`llama.h`) and of its library for images (`mtmd.h`), called through koffi.
 *
 * The prebuilt library comes from the package `@fugood/node-llama-<platform>`. Struct layouts belong to its pinned version; values that
 * would differ in another layout are checked at load.
 */
import { createRequire } from 'node:module';
import koffi from 'koffi';

/** Build of llama.cpp in the pinned package. */
export const LLAMA_BUILD = 'b10257';

/** Address in native memory. */
export type Pointer = bigint;

const MODEL_PARAMS = {
  devices: 'void *',
  tensor_buft_overrides: 'void *',
  n_gpu_layers: 'int32_t',
  split_mode: 'int',
  load_mode: 'int',
  main_gpu: 'int32_t',
  tensor_split: 'void *',
  progress_callback: 'void *',
  progress_callback_user_data: 'void *',
  kv_overrides: 'void *',
  vocab_only: 'bool',
  check_tensors: 'bool',
  use_extra_bufts: 'bool',
  no_host: 'bool',
  no_alloc: 'bool',
  load_mtp: 'bool',
} as const;

const CONTEXT_PARAMS = {
  n_ctx: 'uint32_t',
  n_batch: 'uint32_t',
  n_ubatch: 'uint32_t',
  n_seq_max: 'uint32_t',
  n_rs_seq: 'uint32_t',
  n_outputs_max: 'uint32_t',
  n_threads: 'int32_t',
  n_threads_batch: 'int32_t',
  ctx_type: 'int',
  rope_scaling_type: 'int',
  pooling_type: 'int',
  attention_type: 'int',
  flash_attn_type: 'int',
  rope_freq_base: 'float',
  rope_freq_scale: 'float',
  yarn_ext_factor: 'float',
  yarn_attn_factor: 'float',
  yarn_beta_fast: 'float',
  yarn_beta_slow: 'float',
  yarn_orig_ctx: 'uint32_t',
  defrag_thold: 'float',
  cb_eval: 'void *',
  cb_eval_user_data: 'void *',
  type_k: 'int',
  type_v: 'int',
  abort_callback: 'void *',
  abort_callback_data: 'void *',
  embeddings: 'bool',
  offload_kqv: 'bool',
  no_perf: 'bool',
  op_offload: 'bool',
  swa_full: 'bool',
  kv_unified: 'bool',
  samplers: 'void *',
  n_samplers: 'size_t',
  ctx_other: 'void *',
} as const;

const PROJECTOR_PARAMS = {
  use_gpu: 'bool',
  print_timings: 'bool',
  n_threads: 'int',
  image_marker: 'void *',
  media_marker: 'str',
  flash_attn_type: 'int',
  warmup: 'bool',
  image_min_tokens: 'int',
  image_max_tokens: 'int',
  cb_eval: 'void *',
  cb_eval_user_data: 'void *',
  batch_max_tokens: 'int32_t',
  progress_callback: 'void *',
  progress_callback_user_data: 'void *',
} as const;

const BATCH = {
  n_tokens: 'int32_t',
  token: 'void *',
  embd: 'void *',
  pos: 'void *',
  n_seq_id: 'void *',
  seq_id: 'void *',
  logits: 'void *',
};
const INPUT_TEXT = { text: 'str', text_len: 'size_t', add_special: 'bool', parse_special: 'bool' };
const LOGIT_BIAS = { token: 'int32_t', bias: 'float' };

/** C prototypes, by name. */
const FUNCTIONS = {
  llama_backend_init: 'void llama_backend_init()',
  llama_log_set: 'void llama_log_set(void *callback, void *user_data)',
  mtmd_helper_log_set: 'void mtmd_helper_log_set(void *callback, void *user_data)',
  llama_model_default_params: 'llama_model_params llama_model_default_params()',
  llama_context_default_params: 'llama_context_params llama_context_default_params()',
  mtmd_context_params_default: 'mtmd_context_params mtmd_context_params_default()',
  llama_model_load_from_file: 'void *llama_model_load_from_file(str path, llama_model_params params)',
  llama_init_from_model: 'void *llama_init_from_model(void *model, llama_context_params params)',
  llama_model_get_vocab: 'void *llama_model_get_vocab(void *model)',
  llama_model_chat_template: 'str llama_model_chat_template(void *model, void *name)',
  llama_model_meta_val_str: 'int llama_model_meta_val_str(void *model, str key, void *buffer, size_t size)',
  llama_model_n_embd: 'int llama_model_n_embd(void *model)',
  llama_model_n_layer: 'int llama_model_n_layer(void *model)',
  llama_model_n_swa: 'int llama_model_n_swa(void *model)',
  llama_model_is_recurrent: 'bool llama_model_is_recurrent(void *model)',
  llama_model_is_hybrid: 'bool llama_model_is_hybrid(void *model)',
  llama_n_ctx_seq: 'uint32_t llama_n_ctx_seq(void *ctx)',
  llama_n_batch: 'uint32_t llama_n_batch(void *ctx)',
  llama_supports_gpu_offload: 'bool llama_supports_gpu_offload()',
  llama_vocab_n_tokens: 'int llama_vocab_n_tokens(void *vocab)',
  llama_vocab_type: 'int llama_vocab_type(void *vocab)',
  llama_vocab_get_text: 'str llama_vocab_get_text(void *vocab, int32_t token)',
  llama_vocab_get_attr: 'int llama_vocab_get_attr(void *vocab, int32_t token)',
  llama_vocab_is_eog: 'bool llama_vocab_is_eog(void *vocab, int32_t token)',
  llama_vocab_bos: 'int32_t llama_vocab_bos(void *vocab)',
  llama_vocab_eos: 'int32_t llama_vocab_eos(void *vocab)',
  llama_vocab_fim_pre: 'int32_t llama_vocab_fim_pre(void *vocab)',
  llama_vocab_fim_suf: 'int32_t llama_vocab_fim_suf(void *vocab)',
  llama_vocab_fim_mid: 'int32_t llama_vocab_fim_mid(void *vocab)',
  llama_vocab_get_add_bos: 'bool llama_vocab_get_add_bos(void *vocab)',
  llama_tokenize:
    'int llama_tokenize(void *vocab, void *text, int32_t bytes, void *tokens, int32_t max, bool add_special, bool parse_special)',
  llama_detokenize:
    'int llama_detokenize(void *vocab, void *tokens, int32_t count, void *text, int32_t bytes, bool remove_special, bool unparse_special)',
  llama_batch_init: 'llama_batch llama_batch_init(int32_t tokens, int32_t embd, int32_t sequences)',
  llama_batch_free: 'void llama_batch_free(llama_batch batch)',
  llama_decode: 'int llama_decode(void *ctx, llama_batch batch)',
  llama_get_logits_ith: 'void *llama_get_logits_ith(void *ctx, int32_t index)',
  llama_get_memory: 'void *llama_get_memory(void *ctx)',
  llama_memory_seq_rm: 'bool llama_memory_seq_rm(void *memory, int32_t sequence, int32_t from, int32_t to)',
  llama_memory_seq_pos_min: 'int32_t llama_memory_seq_pos_min(void *memory, int32_t sequence)',
  llama_sampler_chain_init: 'void *llama_sampler_chain_init(llama_sampler_chain_params params)',
  llama_sampler_chain_add: 'void llama_sampler_chain_add(void *chain, void *sampler)',
  llama_sampler_init_greedy: 'void *llama_sampler_init_greedy()',
  llama_sampler_init_dist: 'void *llama_sampler_init_dist(uint32_t seed)',
  llama_sampler_init_top_k: 'void *llama_sampler_init_top_k(int32_t k)',
  llama_sampler_init_top_p: 'void *llama_sampler_init_top_p(float p, size_t min_keep)',
  llama_sampler_init_min_p: 'void *llama_sampler_init_min_p(float p, size_t min_keep)',
  llama_sampler_init_temp: 'void *llama_sampler_init_temp(float t)',
  llama_sampler_init_penalties: 'void *llama_sampler_init_penalties(int32_t last, float repeat, float frequency, float presence)',
  llama_sampler_init_logit_bias: 'void *llama_sampler_init_logit_bias(int32_t vocab, int32_t count, llama_logit_bias *bias)',
  llama_sampler_init_grammar: 'void *llama_sampler_init_grammar(void *vocab, str grammar, str root)',
  llama_sampler_sample: 'int32_t llama_sampler_sample(void *sampler, void *ctx, int32_t index)',
  llama_sampler_apply: 'void llama_sampler_apply(void *sampler, void *candidates)',
  llama_sampler_accept: 'void llama_sampler_accept(void *sampler, int32_t token)',
  llama_sampler_free: 'void llama_sampler_free(void *sampler)',
  mtmd_init_from_file: 'void *mtmd_init_from_file(str path, void *model, mtmd_context_params params)',
  mtmd_free: 'void mtmd_free(void *projector)',
  mtmd_support_vision: 'bool mtmd_support_vision(void *projector)',
  mtmd_decode_use_non_causal: 'bool mtmd_decode_use_non_causal(void *projector, void *chunk)',
  mtmd_bitmap_init: 'void *mtmd_bitmap_init(uint32_t width, uint32_t height, void *rgb)',
  mtmd_bitmap_free: 'void mtmd_bitmap_free(void *bitmap)',
  mtmd_input_chunks_init: 'void *mtmd_input_chunks_init()',
  mtmd_input_chunks_size: 'size_t mtmd_input_chunks_size(void *chunks)',
  mtmd_input_chunks_get: 'void *mtmd_input_chunks_get(void *chunks, size_t index)',
  mtmd_input_chunks_free: 'void mtmd_input_chunks_free(void *chunks)',
  mtmd_input_chunk_get_type: 'int mtmd_input_chunk_get_type(void *chunk)',
  mtmd_input_chunk_get_tokens_text: 'void *mtmd_input_chunk_get_tokens_text(void *chunk, _Out_ size_t *count)',
  mtmd_input_chunk_get_n_tokens: 'size_t mtmd_input_chunk_get_n_tokens(void *chunk)',
  mtmd_input_chunk_get_n_pos: 'int32_t mtmd_input_chunk_get_n_pos(void *chunk)',
  mtmd_tokenize: 'int mtmd_tokenize(void *projector, void *chunks, mtmd_input_text *text, void *bitmaps, size_t count)',
  mtmd_encode_chunk: 'int mtmd_encode_chunk(void *projector, void *chunk)',
  mtmd_get_output_embd: 'void *mtmd_get_output_embd(void *projector)',
  mtmd_helper_decode_image_chunk:
    'int mtmd_helper_decode_image_chunk(void *projector, void *ctx, void *chunk, void *embeddings, int32_t position, int32_t sequence, ' +
    'int32_t batch, _Out_ int32_t *next, void *callback, void *user_data)',
} as const;

/** A native function. Arguments and results are as in its prototype: numbers, booleans, strings, structs and {@link Pointer}s. */
export type NativeFunction = ((...args: unknown[]) => unknown) & {
  /** Runs on a thread of the pool. The last argument is the callback. */
  async(...args: unknown[]): void;
};
export type LlamaLibrary = Readonly<Record<keyof typeof FUNCTIONS, NativeFunction>>;

/**
 * Stack of a native call. koffi's defaults, 2 MiB and 128 KiB on pool threads, are too small: llama.cpp's tokenizer needs megabytes
 * for a long word (tokenizer.ts), and GPU drivers more than 128 KiB. Pages take memory only once used.
 */
const STACK_BYTES = 16 << 20;

/** Loads the library. Call once per process. Throws an Error whose message is meant for the Mac's owner. */
export function loadLlamaLibrary(): LlamaLibrary {
  koffi.config({ sync_stack_size: STACK_BYTES, async_stack_size: STACK_BYTES });
  const lib = koffi.load(libraryPath());
  koffi.struct('llama_model_params', MODEL_PARAMS);
  koffi.struct('llama_context_params', CONTEXT_PARAMS);
  koffi.struct('mtmd_context_params', PROJECTOR_PARAMS);
  koffi.struct('llama_batch', BATCH);
  koffi.struct('mtmd_input_text', INPUT_TEXT);
  koffi.struct('llama_logit_bias', LOGIT_BIAS);
  koffi.struct('llama_sampler_chain_params', { no_perf: 'bool' });
  const functions = Object.entries(FUNCTIONS).map(([name, prototype]) => [name, lib.func(prototype)] as const);
  const library = Object.fromEntries(functions) as unknown as LlamaLibrary;
  checkLayouts(library);
  return library;
}

function libraryPath(): string {
  const name = `@fugood/node-llama-${process.platform}-${process.arch}`;
  try {
    return createRequire(import.meta.url).resolve(`${name}/index.node`);
  } catch (error) {
    throw new Error(`the engine for models with image input is not installed: the package ${name} is missing`, { cause: error });
  }
}

/** Throws {@link UnknownLayout} if default parameters or a new batch have other values than known. `Projector` checks `mtmd_input_text`. */
function checkLayouts(library: LlamaLibrary): void {
  const model = library.llama_model_default_params() as Record<string, unknown>;
  const context = library.llama_context_default_params() as Record<string, unknown>;
  const projector = library.mtmd_context_params_default() as Record<string, unknown>;
  const isKnown =
    model.use_extra_bufts === true &&
    model.load_mtp === false &&
    context.n_batch === 2048 &&
    context.offload_kqv === true &&
    context.kv_unified === false &&
    context.ctx_other === null &&
    projector.batch_max_tokens === 1024 &&
    projector.progress_callback_user_data === null &&
    isBatchKnown(library);
  if (!isKnown) throw new UnknownLayout();
}

/** Whether a batch of tokens has no embeddings, a batch of embeddings no tokens, and a null ends the list of sequences. */
function isBatchKnown(library: LlamaLibrary): boolean {
  return [0, 1].every((embeddings) => {
    const batch = library.llama_batch_init(1, embeddings, 1) as Record<keyof typeof BATCH, number | Pointer | null>;
    const { n_tokens, token, embd, pos, n_seq_id, seq_id, logits } = batch;
    const isPlain = n_tokens === 0 && (token === null) === embeddings > 0 && (embd === null) === (embeddings === 0);
    if (!isPlain || pos === null || n_seq_id === null || seq_id === null || logits === null) return false;
    const [first, end] = new BigUint64Array(nativeView(seq_id as Pointer, 16));
    if (first === 0n || end !== 0n) return false;
    library.llama_batch_free(batch);
    return true;
  });
}

/** The native library has other struct layouts than this program expects. */
export class UnknownLayout extends Error {
  constructor() {
    super('the engine for models with image input has another version than this program expects');
    this.name = 'UnknownLayout';
  }
}

/** Calls a function on a thread of the pool. The callback's closure keeps buffers in `args` alive until the call ends. */
export function callAsync<Result>(call: NativeFunction, ...args: readonly unknown[]): Promise<Result> {
  return new Promise((resolve, reject) => {
    call.async(...args, (error: unknown, result: Result) => (error === null || error === undefined ? resolve(result) : reject(error)));
  });
}

/** Allocates native memory that is never freed. */
export function nativeMemory(bytes: number): { readonly pointer: Pointer; readonly buffer: ArrayBuffer } {
  const pointer = koffi.alloc('uint8_t', bytes) as Pointer;
  return { pointer, buffer: koffi.view(pointer, bytes) };
}

/** View of native memory that belongs to the library, valid until the library changes or frees it. */
export function nativeView(pointer: Pointer, bytes: number): ArrayBuffer {
  return koffi.view(pointer, bytes);
}

/** Disables the library's log, which may quote prompts. Any C function can be the callback, because it ignores surplus arguments. */
export function silence(library: LlamaLibrary): void {
  const nothing = koffi.load(libraryPath()).symbol('llama_supports_gpu_offload') as Pointer;
  library.llama_log_set(nothing, null);
  library.mtmd_helper_log_set(nothing, null);
}

/** `GGML_LOG_LEVEL_ERROR` in `ggml.h`. */
const ERROR_LEVEL = 4;
const MAX_COLLECTED_ERRORS = 20;

/** Adds the errors that the library logs while `work` runs to `errors`. Disables the log afterwards. */
export async function collectErrors<Result>(library: LlamaLibrary, errors: string[], work: () => Promise<Result>): Promise<Result> {
  const collect = (level: number, text: string): void => {
    if (level === ERROR_LEVEL && errors.length < MAX_COLLECTED_ERRORS) errors.push(text);
  };
  const callback = koffi.register(collect, koffi.pointer(koffi.proto('void log_callback(int level, str text, void *user_data)')));
  library.llama_log_set(callback, null);
  library.mtmd_helper_log_set(callback, null);
  try {
    return await work();
  } finally {
    silence(library);
    koffi.unregister(callback);
  }
}
