/** Whether a model file is for vectors, read from its metadata: the pooling it names, or an architecture that knows nothing else. */
import type { GgufHeader } from './gguf-header.js';

export interface EmbeddingFacts {
  /** Numbers in one vector. */
  readonly dimensions: number;
  /** It was trained so that the beginning of a vector is a vector too. */
  readonly truncatable: boolean;
}

/** Encoders: they read a text and write none. */
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
const RANK = 4;

/** Families whose makers document shorter vectors; no metadata of GGUF says it. */
const TRUNCATABLE =
  /qwen3[ -]?embedding|nomic[ -]embed[ -]text[ -]v(?:1\.5|2)|embedding ?gemma|jina[ -]embeddings[ -]v[34]|mxbai[ -]embed[ -]large/i;

/** Null for a model that writes text. */
export function embeddingFacts({ values }: GgufHeader, architecture: string): EmbeddingFacts | 'reranker' | null {
  const pooling = values.get(`${architecture}.pooling_type`);
  if (pooling === RANK) return 'reranker';
  const isEncoder = ENCODERS.has(architecture) || values.get(`${architecture}.attention.causal`) === false;
  if (!isEncoder && (typeof pooling !== 'number' || pooling === NO_POOLING)) return null;
  const name = values.get('general.name');
  return {
    dimensions: Number(values.get(`${architecture}.embedding_length`) ?? 0),
    truncatable: typeof name === 'string' && TRUNCATABLE.test(name),
  };
}
