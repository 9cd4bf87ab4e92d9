/** `readModelFacts` reads from a model's file or folder what the daemon needs for offers, memory planning and answers. */
import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { basename, extname } from 'node:path';
import { cleanLabel, type ModelType } from '@inference/protocol';
import { type EmbeddingFacts, embeddingFacts } from './embedding-facts.js';
import { quantizationLabel } from './ggml-types.js';
import { type GgufHeader, headerNumber, headerText, ModelFileError, readGgufHeader } from './gguf-header.js';
import type { ImageFacts } from './image/image-facts.js';
import { isOnnxFolder, readOnnxFolder } from './image/onnx-folder.js';
import { isStableDiffusionFolder, readStableDiffusionFolder } from './image/stable-diffusion-folder.js';
import { KV_BLOCK_ELEMENTS } from './kv-cache-type.js';
import { isProjector, readProjector, type VisionFacts } from './projector.js';
import { type ThinkTags, thinkTagsOf } from './think-tags.js';

export interface ModelFacts {
  readonly path: string;
  readonly id: string;
  readonly displayName: string;
  /** For example `8bit`. */
  readonly quantization: string;
  /** Tokens that the model was trained for, prompt and answer together. */
  readonly trainedContext: number;
  readonly thinkTags: ThinkTags | null;
  /** Whether the chat template has think tags. Null without a template. */
  readonly thinks: boolean | null;
  /** SHA-256 of the chat template, or null. */
  readonly templateSha256: string | null;
  /** Null for other than embedding models. */
  readonly embedding: EmbeddingFacts | null;
  /** Null for other than image models. A model without `embedding` and `image` writes text. */
  readonly image: ImageFacts | null;
  /** Null if the model reads no images. */
  readonly vision: VisionFacts | null;
  readonly fileBytes: number;
  /** All files. In a text model, `path` is first, and a projector last. */
  readonly files: readonly string[];
  /** Bytes of weights read per token: without the experts that a token does not use. */
  readonly activeBytes: number;
  /** KV-cache bytes per token of one sequence, with keys and values of type `f16`. */
  readonly cacheBytesPerToken: number;
  readonly canQuantizeCache: boolean;
}

/**
 * Reads and checks a model: a GGUF file, or the folder of an image model.
 *
 * @param projectorPath Projector of a vision model; null to serve the model for text only.
 * @throws {ModelFileError} A file is unusable, or the files do not belong together.
 */
export function readModelFacts(path: string, projectorPath: string | null = null): ModelFacts {
  const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
  if (isFolder && projectorPath !== null) throw new ModelFileError(`the image model ${path} takes no projector`);
  return isFolder ? imageModelFacts(path) : modelFacts(path, readGgufHeader(path), projectorPath);
}

/** Model type in the wire format. */
export function modelTypeOf({ embedding, image }: Pick<ModelFacts, 'embedding' | 'image'>): ModelType {
  if (image !== null) return 'image';
  return embedding === null ? 'text' : 'embedding';
}

/** Throws {@link ModelFileError} if the folder contains no servable image model. */
function imageModelFacts(path: string): ModelFacts {
  const { name, quantization, promptTokens, facts, files, bytes } = withModelFileError(path, () => readImageFolder(path));
  return {
    path,
    id: slug(name) || slug(basename(path)) || 'model',
    displayName: cleanLabel(name, 128, 'model'),
    quantization: cleanLabel(quantization, 32, 'unknown'),
    trainedContext: promptTokens,
    thinkTags: null,
    thinks: null,
    templateSha256: null,
    embedding: null,
    image: facts,
    vision: null,
    fileBytes: bytes,
    files,
    activeBytes: bytes,
    cacheBytesPerToken: 0,
    canQuantizeCache: false,
  };
}

/** Converts file system errors, such as missing permissions, to a sentence for the owner. */
function withModelFileError<Read>(path: string, read: () => Read): Read {
  try {
    return read();
  } catch (error) {
    if (error instanceof ModelFileError) throw error;
    throw new ModelFileError(`the model ${path} cannot be read: ${error instanceof Error ? error.message : 'unknown'}`);
  }
}

function readImageFolder(path: string) {
  if (isStableDiffusionFolder(path)) {
    const model = readStableDiffusionFolder(path);
    return { ...model, files: model.paths };
  }
  if (!isOnnxFolder(path)) throw new ModelFileError(`the folder ${path} holds no image model: there is no model_index.json in it`);
  const model = readOnnxFolder(path);
  return { ...model, quantization: LABEL_BY_WEIGHT_TYPE[model.weightType] ?? model.weightType, promptTokens: model.vocabulary.length };
}

const LABEL_BY_WEIGHT_TYPE: Readonly<Record<string, string>> = {
  float32: '32bit',
  float16: '16bit',
  bfloat16: '16bit',
  int8: '8bit',
  uint8: '8bit',
};

/** Facts of a GGUF model. Throws {@link ModelFileError} if the model or its projector cannot be served. */
export function modelFacts(path: string, header: GgufHeader, projectorPath: string | null = null): ModelFacts {
  if (isProjector(header)) {
    throw new ModelFileError(`the file ${path} is the projector of a vision model and not a language model; name the language model`);
  }
  const architecture = headerText(header, 'general.architecture');
  const trainedContext = headerNumber(header, `${architecture}.context_length`);
  if (architecture === null || trainedContext === null || trainedContext < 1 || !header.arrayLengths.has('tokenizer.ggml.tokens')) {
    throw new ModelFileError(`the model file ${path} holds no language model`);
  }
  const embedding = embeddingFacts(header, architecture);
  if (embedding === 'reranker') throw new ModelFileError(`the model file ${path} holds a reranker, which is not supported`);
  if (embedding !== null && projectorPath !== null) throw new ModelFileError(`the embedding model ${path} takes no projector`);
  const files = modelFiles(path, header);
  const vision = projectorPath === null ? null : readProjector(projectorPath, headerNumber(header, `${architecture}.embedding_length`));
  const template = headerText(header, 'tokenizer.chat_template');
  const thinkTags = thinkTagsOf(template);
  const fileName = basename(path, extname(path));
  const name = headerText(header, 'general.name')?.trim() || fileName;
  return {
    path,
    id: slug(name) || slug(fileName) || 'model',
    displayName: cleanLabel(name, 128, 'model'),
    quantization: quantizationLabel(headerNumber(header, 'general.file_type')),
    trainedContext,
    embedding,
    image: null,
    vision,
    thinkTags,
    templateSha256: template === null ? null : createHash('sha256').update(template).digest('hex'),
    thinks: template === null ? null : thinkTags !== null,
    fileBytes: files.bytes + (vision?.projectorBytes ?? 0),
    files: vision === null ? files.paths : [...files.paths, vision.projectorPath],
    activeBytes: activeBytes(header, architecture, files.bytes),
    ...cacheFacts(header, architecture),
  };
}

/** Derives a model id from a name: lowercase, with dashes for forbidden characters. `Pico demo` becomes `pico-demo`. */
export function slug(name: string): string {
  return name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9._]+/g, '-')
    .replace(/^[^a-z0-9]+|[^a-z0-9]+$/g, '')
    .slice(0, 128);
}

/** `bytes`: of all files. Assumes that experts have the same share in all files of a split model as in the first. */
function activeBytes(header: GgufHeader, architecture: string, bytes: number): number {
  const experts = headerNumber(header, `${architecture}.expert_count`) ?? 0;
  const used = headerNumber(header, `${architecture}.expert_used_count`) ?? 0;
  if (experts < 1 || used < 1 || used > experts) return bytes;
  const share = header.expertBytes / Math.max(1, header.fileBytes);
  return Math.round(bytes * (1 - share * (1 - used / experts)));
}

/** Architectures that llama.cpp computes without flash attention, which a quantized cache needs. */
const WITHOUT_FLASH_ATTENTION: readonly string[] = ['grok'];

function cacheFacts(header: GgufHeader, architecture: string): Pick<ModelFacts, 'cacheBytesPerToken' | 'canQuantizeCache'> {
  const numberOf = (key: string) => headerNumber(header, `${architecture}.${key}`);
  const layers = numberOf('block_count') ?? 0;
  const heads = numberOf('attention.head_count') ?? 1;
  const headSize = Math.ceil((numberOf('embedding_length') ?? 0) / Math.max(1, heads));
  const kvHeads = numberOf('attention.head_count_kv') ?? heads;
  const keySize = numberOf('attention.key_length') ?? headSize;
  const valueSize = numberOf('attention.value_length') ?? headSize;
  // Layers with a sliding window may have heads of another size.
  const sizes = [keySize, valueSize, numberOf('attention.key_length_swa') ?? keySize, numberOf('attention.value_length_swa') ?? valueSize];
  return {
    cacheBytesPerToken: 2 * layers * kvHeads * (keySize + valueSize),
    canQuantizeCache: !WITHOUT_FLASH_ATTENTION.includes(architecture) && sizes.every((size) => size % KV_BLOCK_ELEMENTS === 0),
  };
}

const NUMBERED = /-(\d{5})-of-(\d{5})\.gguf$/i;
const MAX_PARTS = 1024;

/**
 * All files of a model, in order, with their total size. Split models are named `NAME-00001-of-00003.gguf` and so on.
 *
 * @throws {ModelFileError} A file is missing.
 */
function modelFiles(path: string, { values, fileBytes }: GgufHeader): { readonly paths: readonly string[]; readonly bytes: number } {
  const count = Number(values.get('split.count') ?? 1);
  if (count === 1) return { paths: [path], bytes: fileBytes };
  const match = NUMBERED.exec(path);
  if (!Number.isInteger(count) || count < 1 || count > MAX_PARTS || Number(match?.[2]) !== count) {
    throw new ModelFileError(
      `the model file ${path} is one of ${count} files of a model, but its name does not end in -00001-of-${String(count).padStart(5, '0')}.gguf`,
    );
  }
  if (Number(match?.[1]) !== 1)
    throw new ModelFileError(`the model file ${path} is not the first of the model's ${count} files; name the first`);
  const paths = Array.from({ length: count }, (_, index) =>
    path.replace(NUMBERED, `-${String(index + 1).padStart(5, '0')}-of-${String(count).padStart(5, '0')}.gguf`),
  );
  let bytes = 0;
  for (const part of paths) {
    const stat = statSync(part, { throwIfNoEntry: false });
    if (stat === undefined) throw new ModelFileError(`the model needs the file ${part}, which is missing`);
    bytes += stat.size;
  }
  return { paths, bytes };
}
