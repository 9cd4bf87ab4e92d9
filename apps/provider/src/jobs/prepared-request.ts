/** `prepareRequest` tags a parsed request with its kind, and compiles the output constraint of a text request. */
import type { ParsedEmbeddings, ParsedImages, ParsedRequest } from '@inference/formats';
import { isImages, type ParsedBody } from './channel/parsed-body.js';
import type { ConstraintCompiler, OutputConstraint } from './constraint/constraint-compiler.js';

export interface ConstrainedRequest extends ParsedRequest {
  /** Null if the output is not constrained. */
  readonly constraint: OutputConstraint | null;
}

export type PreparedRequest =
  | ({ readonly kind: 'text' } & ConstrainedRequest)
  | ({ readonly kind: 'embeddings' } & ParsedEmbeddings)
  | ({ readonly kind: 'images' } & ParsedImages);

/** Throws {@link JobError} `invalid_request` or `unsupported`, or the signal's reason. */
export async function prepareRequest(
  parsed: ParsedBody,
  cacheScope: string | null,
  constraints: Pick<ConstraintCompiler, 'compile'>,
  signal: AbortSignal,
): Promise<PreparedRequest> {
  if (isImages(parsed)) return { kind: 'images', ...parsed };
  if (!isText(parsed)) return { kind: 'embeddings', ...parsed };
  return { kind: 'text', ...parsed, constraint: await constraints.compile(parsed, signal, cacheScope) };
}

function isText(parsed: ParsedRequest | ParsedEmbeddings): parsed is ParsedRequest {
  return parsed.request.task !== 'embed';
}
