/** `embeddingFacts` detects embedding models by the metadata of a GGUF file: pooling type, encoder architecture, or attention. */
import type { GgufHeader } from './gguf-header.js';

export interface EmbeddingFacts {
  /** Length of a vector. */
  readonly dimensions: number;
  /** Trained so that a prefix of a vector is a valid vector (Matryoshka). */
  readonly truncatable: boolean;
}

/** Encoder architectures, without text generation. */
const ENCODERS: ReadonlySet<string> = new Set([
  'bert',
  'modern-bert',
  'nomic-bert',
  'nomic-bert-moe',
  'neo-bert',
  'jina-bert-v2',
  'jina-bert-v3',
  'gemma-embedding',
  't5encoder',
]);
/** llama.cpp's `llama_pooling_type`. */
const NO_POOLING = 0;
const RANK_POOLING = 4;

/** Names of models whose publishers document shortened vectors. GGUF metadata does not record this property. */
const TRUNCATABLE =
  /qwen3[ -]?embedding|nomic[ -]embed[ -]text[ -]v(?:1\.5|2)|embedding ?gemma|jina[ -]embeddings[ -]v[34]|mxbai[ -]embed[ -]large/i;

/** Returns null for a text model, and `reranker` for a model that only scores pairs of texts. */
export function embeddingFacts({ values }: GgufHeader, architecture: string): EmbeddingFacts | 'reranker' | null {
  const pooling = values.get(`${architecture}.pooling_type`);
  if (pooling === RANK_POOLING) return 'reranker';
  const isEncoder = ENCODERS.has(architecture) || values.get(`${architecture}.attention.causal`) === false;
  if (!isEncoder && (typeof pooling !== 'number' || pooling === NO_POOLING)) return null;
  const name = values.get('general.name');
  return {
    dimensions: Number(values.get(`${architecture}.embedding_length`) ?? 0),
    truncatable: typeof name === 'string' && TRUNCATABLE.test(name),
  };
}
