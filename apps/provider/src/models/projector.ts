/** `readProjector` reads facts of a projector (`mmproj`): a GGUF file that encodes images as embeddings for a language model. */
import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { MAX_IMAGE_TOKENS, MAX_INPUT_IMAGES } from '@inference/protocol';
import { type GgufHeader, headerNumber, headerText, ModelFileError, readGgufHeader } from './gguf-header.js';

export interface VisionFacts {
  readonly projectorPath: string;
  readonly projectorBytes: number;
  /** Maximum prompt tokens of one image, estimated from the header. The engine measures the maximum when it loads. */
  readonly maxImageTokens: number;
  /** Estimated bytes of buffers while an image is encoded. */
  readonly imageBytes: number;
}

/** The projector reads no images, only audio. The language model can be served without it. */
export class AudioProjectorError extends ModelFileError {
  constructor(path: string) {
    super(`the projector ${path} is for audio, and only projectors for images are supported`);
    this.name = 'AudioProjectorError';
  }
}

export function isProjector({ values }: GgufHeader): boolean {
  return values.get('general.architecture') === 'clip' || values.get('general.type') === 'mmproj';
}

/** Path of `mmproj-NAME.gguf` in the folder of the local file `NAME.gguf`. Null if there is none, or if the projector reads only audio. */
export function adjacentProjectorPath(path: string): string | null {
  const projector = join(dirname(path), `mmproj-${basename(path)}`);
  if (!existsSync(projector)) return null;
  try {
    readProjector(projector, null);
  } catch (error) {
    if (error instanceof AudioProjectorError) return null;
    // A damaged projector is reported when the model is read.
    if (!(error instanceof ModelFileError)) throw error;
  }
  return projector;
}

/** Images that fit into a context together with some text and an answer. At least 1, so that a small context gives a clear error. */
export function maxImagesOf(contextSize: number, maxImageTokens: number): number {
  const room = contextSize - Math.min(TEXT_TOKENS, contextSize / 4);
  return Math.min(MAX_INPUT_IMAGES, Math.max(1, Math.floor(room / maxImageTokens)));
}

/** Tokens of the context for text and answer. */
const TEXT_TOKENS = 1024;

/**
 * @param embeddingLength Of the language model that the projector must fit. Null: not checked.
 * @throws {ModelFileError} The file is damaged, no projector, or for another model. {@link AudioProjectorError} for audio.
 */
export function readProjector(path: string, embeddingLength: number | null): VisionFacts {
  const header = readGgufHeader(path);
  if (!isProjector(header)) throw new ModelFileError(`the file ${path} is not a projector: its architecture is not clip`);
  if (header.values.get('clip.has_vision_encoder') !== true) throw new AudioProjectorError(path);
  const shape = shapeOf(header);
  const outputLength = headerNumber(header, 'clip.vision.projection_dim');
  if (!LEGACY_TYPES.has(shape.type) && embeddingLength !== null && outputLength !== embeddingLength) {
    throw new ModelFileError(
      `the projector ${path} belongs to another model: it writes embeddings of length ${outputLength ?? 'unknown'}, and this model reads ${embeddingLength}`,
    );
  }
  const { tiles, tokens, patches } = tilingOf(shape);
  return {
    projectorPath: path,
    projectorBytes: header.fileBytes,
    maxImageTokens: Math.min(MAX_IMAGE_TOKENS, Math.max(1, Math.ceil(tiles * (tokens + TOKENS_PER_TILE) + BOUNDARY_TOKENS))),
    imageBytes: Math.ceil(patches) * BYTES_PER_FLOAT * (WIDTHS_PER_PATCH * shape.width + FEED_FORWARDS_PER_PATCH * shape.feedForward),
  };
}

/** Types whose early files state a wrong `projection_dim`. llama.cpp compares the tensors instead. */
const LEGACY_TYPES: ReadonlySet<string> = new Set(['mlp', 'ldp', 'ldpv2', 'resampler', 'adapter']);
/** Marker tokens of a tile and of the whole image, in the formats of llama.cpp's mtmd.cpp. */
const TOKENS_PER_TILE = 8;
const BOUNDARY_TOKENS = 16;

/** Buffers of one encoder layer, with flash attention: activations in 32-bit floats, as multiples of the layer's sizes. */
const BYTES_PER_FLOAT = 4;
const WIDTHS_PER_PATCH = 8;
const FEED_FORWARDS_PER_PATCH = 2;

/** Parameters of the encoder, from the header. Sides and edges are in pixels. */
interface Shape {
  readonly type: string;
  readonly tileSide: number;
  readonly patchSide: number;
  /** Patches merged into one token, per side. If null, the type's default applies. */
  readonly merge: number | null;
  readonly maxPixels: number | null;
  readonly longestEdge: number | null;
  readonly maxTiles: number | null;
  /** Tokens of a tile of MiniCPM-V. */
  readonly queries: number | null;
  /** Whether images are divided into tiles by a list of grids (LLaVA 1.6). */
  readonly hasGrid: boolean;
  readonly width: number;
  readonly feedForward: number;
}

function shapeOf(header: GgufHeader): Shape {
  const of = (key: string): number | null => {
    const value = headerNumber(header, `clip.vision.${key}`);
    return value !== null && value >= 1 && value <= 1 << 28 ? value : null;
  };
  return {
    type: headerText(header, 'clip.vision.projector_type') ?? headerText(header, 'clip.projector_type') ?? 'mlp',
    tileSide: of('image_size') ?? 1,
    patchSide: of('patch_size') ?? 1,
    merge: of('projector.scale_factor') ?? of('spatial_merge_size'),
    maxPixels: of('image_max_pixels'),
    longestEdge: of('preproc_image_size'),
    maxTiles: of('preproc_max_tiles'),
    queries: headerNumber(header, 'clip.minicpmv_query_num'),
    hasGrid: header.arrayLengths.has('clip.vision.image_grid_pinpoints'),
    width: of('embedding_length') ?? 0,
    feedForward: of('feed_forward_length') ?? 0,
  };
}

/** Tokens and encoder patches are those of one tile. */
interface Tiling {
  /** Tiles of one image, the overview included. */
  readonly tiles: number;
  readonly tokens: number;
  readonly patches: number;
}

/** Maximum tokens of types that keep an image's proportions, as set in llama.cpp's clip.cpp. */
const DYNAMIC_TOKENS: Readonly<Record<string, number>> = {
  gemma4v: 280,
  gemma4uv: 280,
  minimax_m3: 576,
  kimivl: 1024,
  // Up to one break token per row of patches.
  pixtral: 2048,
  qwen2vl_merger: 4096,
  'qwen2.5vl_merger': 4096,
  qwen3vl_merger: 4096,
  'qwen2.5o': 4096,
  glm4v: 4096,
  kimik25: 4096,
  hunyuanvl: 16_384,
};
/** For types that are not listed: the largest common limit. */
const DEFAULT_DYNAMIC_TOKENS = 4096;
const DEFAULT_MERGE = 2;
/** Tiles of LFM2, of MiniCPM-V and of InternVL without a setting, the overview included. */
const TILES = { lfm2: 11, resampler: 10, internvl: 13 } as const;
const MINICPMV_QUERIES = 96;

/** How llama.cpp divides the largest image, by projector type. */
function tilingOf(shape: Shape): Tiling {
  const { type, tileSide, patchSide, merge, maxPixels, longestEdge } = shape;
  const patches = (tileSide / patchSide) ** 2;
  const fixed = (tiles: number, byDefault: number): Tiling => ({ tiles, tokens: patches / (merge ?? byDefault) ** 2, patches });
  const dynamic = (tokens: number): Tiling => ({ tiles: 1, tokens, patches: tokens * (merge ?? DEFAULT_MERGE) ** 2 });
  switch (type) {
    case 'gemma3':
      return fixed(1, 4);
    case 'gemma3nv':
      return { tiles: 1, tokens: tileSide / patchSide, patches };
    case 'nemotron_v2_vl':
    case 'janus_pro':
      return fixed(1, 1);
    case 'mlp':
    case 'ldp':
    case 'ldpv2':
    case 'adapter':
      return shape.hasGrid ? dynamic(DEFAULT_DYNAMIC_TOKENS) : { tiles: 1, tokens: patches, patches };
    case 'idefics3':
      return fixed(Math.ceil((longestEdge ?? tileSide) / tileSide) ** 2 + 1, 1);
    case 'internvl':
      return fixed(shape.maxTiles === null ? TILES.internvl : shape.maxTiles + 1, 1);
    case 'lfm2':
      return fixed(TILES.lfm2, 2);
    case 'resampler':
      return { tiles: TILES.resampler, tokens: shape.queries ?? MINICPMV_QUERIES, patches };
    case 'lightonocr':
      return dynamic(Math.ceil((longestEdge ?? tileSide) / (patchSide * (merge ?? 1))) ** 2);
    default:
      if (maxPixels !== null) return dynamic(maxPixels / (patchSide * (merge ?? (type === 'phi4' ? 1 : DEFAULT_MERGE))) ** 2);
      return dynamic(DYNAMIC_TOKENS[type] ?? DEFAULT_DYNAMIC_TOKENS);
  }
}
