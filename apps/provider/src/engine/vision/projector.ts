/**
 * `Projector`: an image encoder of llama.cpp (an `mmproj` file), which turns images into embeddings of a language model.
 *
 * `prepare` divides a bitmap into chunks. Each chunk's `read` encodes it and decodes the embeddings into a context. In the prompt,
 * placeholder tokens stand for the embeddings.
 */
import { createHash, randomUUID } from 'node:crypto';
import type { Token } from 'node-llama-cpp';
import type { MediaChunk } from '../process/decoding/media-span.js';
import type { PreparedImage } from '../process/prompt/prompt-images.js';
import type { Bitmap } from './bitmap.js';
import { callAsync, type LlamaLibrary, nativeView, type Pointer, UnknownLayout } from './llama-library.js';
import type { NativeVisionContext } from './native-vision-context.js';
import type { VisionVocabulary } from './vision-vocabulary.js';

/** Values of `mtmd_input_chunk_type` in `mtmd.h`. */
const TEXT_CHUNK = 0;
const IMAGE_CHUNK = 1;
/** Bytes of the pixels' hash in one placeholder token. Seven would exceed the 53 bits of JavaScript's integers. */
const PLACEHOLDER_BYTES = 6;
/** Result of `mtmd_tokenize` for an image that cannot be preprocessed. */
const UNUSABLE_IMAGE = 2;

export interface ProjectorSettings {
  readonly path: string;
  readonly model: Pointer;
  readonly vocabulary: VisionVocabulary;
  readonly useGpu: boolean;
  readonly threads: number;
  /** Maximum tokens of one image, for projectors whose token count grows with the image. If null, the projector's own limit applies. */
  readonly maxImageTokens: number | null;
}

interface Target {
  readonly native: NativeVisionContext;
  readonly context: Pointer;
  readonly batchTokens: number;
}

/** A prepared image whose native memory is freed by `free`. */
export interface OwnedImage extends PreparedImage {
  free(): void;
}

export class Projector {
  #target: Target | null = null;

  private constructor(
    private readonly library: LlamaLibrary,
    private readonly projector: Pointer,
    /** Random text that stands for the image in the input of `mtmd_tokenize`. */
    private readonly marker: string,
  ) {}

  /** Resolves to null if llama.cpp cannot use the file as an image projector for the model. Throws {@link UnknownLayout}. */
  static async load(
    library: LlamaLibrary,
    { path, model, vocabulary, useGpu, threads, maxImageTokens }: ProjectorSettings,
  ): Promise<Projector | null> {
    const marker = `<${randomUUID()}>`;
    const params = {
      ...(library.mtmd_context_params_default() as Record<string, unknown>),
      use_gpu: useGpu,
      print_timings: false,
      n_threads: threads,
      media_marker: marker,
      warmup: false,
      ...(maxImageTokens === null ? {} : { image_max_tokens: maxImageTokens }),
    };
    const projector = await callAsync<Pointer | null>(library.mtmd_init_from_file, path, model, params);
    if (projector === null) return null;
    if (!library.mtmd_support_vision(projector)) {
      library.mtmd_free(projector);
      return null;
    }
    const loaded = new Projector(library, projector, marker);
    loaded.#checkInputText(vocabulary);
    return loaded;
  }

  /**
   * Throws {@link UnknownLayout} if `mtmd_input_text` has another layout: compares a text's tokens with those of the vocabulary.
   *
   * A wrong `text_len` would include ` and more`; a wrong `parse_special` would change the tokens of `eosString`.
   */
  #checkInputText(vocabulary: VisionVocabulary): void {
    const { library, projector } = this;
    const text = `Hello${vocabulary.tokens.eosString ?? ''}`;
    for (const parse_special of [true, false]) {
      const chunks = library.mtmd_input_chunks_init() as Pointer;
      const input = { text: `${text} and more`, text_len: Buffer.byteLength(text), add_special: false, parse_special };
      const code = library.mtmd_tokenize(projector, chunks, input, null, 0) as number;
      const tokens = code === 0 ? this.#list(chunks).flatMap((chunk) => this.#textTokens(chunk)) : [];
      library.mtmd_input_chunks_free(chunks);
      if (tokens.join() !== vocabulary.tokenize(text, parse_special).join()) throw new UnknownLayout();
    }
  }

  /** Whether an image's tokens attend to each other in both directions, and so must be in one batch. */
  get isNonCausal(): boolean {
    // Null stands for any image chunk.
    return this.library.mtmd_decode_use_non_causal(this.projector, null) as boolean;
  }

  free(): void {
    this.library.mtmd_free(this.projector);
  }

  /** Sets the context into which images are decoded. Call before the first `read`. */
  attach(target: Target): void {
    this.#target = target;
  }

  /** Prompt tokens of an image of this size, computed without pixels. 0 if the projector cannot preprocess the image. */
  async count(width: number, height: number): Promise<number> {
    const chunks = await this.#tokenize({ width, height, rgb: null });
    if (chunks === null) return 0;
    const counts = this.#list(chunks).map((chunk) => this.library.mtmd_input_chunk_get_n_tokens(chunk) as number);
    this.library.mtmd_input_chunks_free(chunks);
    return counts.reduce((sum, count) => sum + count, 0);
  }

  /** Divides an image into chunks. Resolves to null if the projector cannot preprocess the image. */
  async prepare(bitmap: Bitmap): Promise<OwnedImage | null> {
    const chunks = await this.#tokenize(bitmap);
    if (chunks === null) return null;
    const placeholders = placeholderTokens(bitmap);
    const tokens: Token[] = [];
    const media: MediaChunk[] = [];
    for (const chunk of this.#list(chunks)) {
      if (this.library.mtmd_input_chunk_get_type(chunk) === TEXT_CHUNK) tokens.push(...this.#textTokens(chunk));
      else {
        const start = tokens.length;
        const count = this.library.mtmd_input_chunk_get_n_tokens(chunk) as number;
        // With multi-dimensional positions (M-RoPE), a chunk takes fewer positions than tokens.
        const positions = this.library.mtmd_input_chunk_get_n_pos(chunk) as number;
        for (let index = 0; index < count; index++) tokens.push(placeholders[index % placeholders.length] as Token);
        media.push({ start, tokens: count, positions, read: (sequence, position) => this.#read(chunk, sequence, position) });
      }
    }
    return { tokens, chunks: media, free: () => void this.library.mtmd_input_chunks_free(chunks) };
  }

  /** Encodes a chunk and decodes its embeddings into a sequence, from `position`. */
  #read(chunk: Pointer, sequence: number, position: number): Promise<void> {
    const { library, projector } = this;
    if (this.#target === null) throw new Error('the projector has no context');
    const { native, context, batchTokens } = this.#target;
    return native.exclusively(async () => {
      if ((await callAsync<number>(library.mtmd_encode_chunk, projector, chunk)) !== 0)
        throw new Error('llama.cpp could not encode an image');
      const embeddings = library.mtmd_get_output_embd(projector);
      // `[0]` receives the next position, which `MediaChunk.positions` already gives. The nulls stand for a callback and its data.
      const rest = [position, sequence, batchTokens, [0], null, null];
      const code = await callAsync<number>(library.mtmd_helper_decode_image_chunk, projector, context, chunk, embeddings, ...rest);
      if (code !== 0) throw new Error(`llama.cpp could not decode an image (${code})`);
    });
  }

  /**
   * Resolves to the chunks of an image, which the caller frees, or to null if the image cannot be preprocessed. The text is only the
   * marker, never a client's. Without `rgb`, the chunks have only sizes.
   */
  async #tokenize({ width, height, rgb }: Omit<Bitmap, 'rgb'> & { readonly rgb: Uint8Array | null }): Promise<Pointer | null> {
    const { library } = this;
    const bitmap = library.mtmd_bitmap_init(width, height, rgb) as Pointer;
    const chunks = library.mtmd_input_chunks_init() as Pointer;
    try {
      const text = { text: this.marker, text_len: this.marker.length, add_special: false, parse_special: true };
      const code = await callAsync<number>(library.mtmd_tokenize, this.projector, chunks, text, BigUint64Array.of(bitmap), 1);
      if (code === 0) return chunks;
      if (code !== UNUSABLE_IMAGE) throw new Error(`llama.cpp could not read an image (${code})`);
      library.mtmd_input_chunks_free(chunks);
      return null;
    } catch (error) {
      library.mtmd_input_chunks_free(chunks);
      throw error;
    } finally {
      library.mtmd_bitmap_free(bitmap);
    }
  }

  /** Lists the chunks. If one of them is neither text nor image, frees all and throws. */
  #list(chunks: Pointer): Pointer[] {
    const { library } = this;
    const list = Array.from(
      { length: library.mtmd_input_chunks_size(chunks) as number },
      (_, index) => library.mtmd_input_chunks_get(chunks, index) as Pointer,
    );
    const isKnown = (chunk: Pointer) => [TEXT_CHUNK, IMAGE_CHUNK].includes(library.mtmd_input_chunk_get_type(chunk) as number);
    if (list.every(isKnown)) return list;
    library.mtmd_input_chunks_free(chunks);
    throw new Error('llama.cpp read something other than an image');
  }

  #textTokens(chunk: Pointer): Token[] {
    // Output argument: receives the count.
    const count = [0];
    const pointer = this.library.mtmd_input_chunk_get_tokens_text(chunk, count) as Pointer | null;
    if (pointer === null || count[0] === 0) return [];
    return [...new Int32Array(nativeView(pointer, 4 * (count[0] as number)))] as Token[];
  }
}

/**
 * Five placeholder tokens that hold 240 bits of the pixels' hash, so that the prefix cache distinguishes images. Negative, unlike the
 * model's own tokens.
 */
function placeholderTokens({ width, height, rgb }: Bitmap): Token[] {
  const hash = createHash('sha256').update(`${width} ${height} `).update(rgb).digest();
  const count = Math.floor(hash.length / PLACEHOLDER_BYTES);
  return Array.from({ length: count }, (_, index) => -(1 + hash.readUIntBE(index * PLACEHOLDER_BYTES, PLACEHOLDER_BYTES)) as Token);
}
