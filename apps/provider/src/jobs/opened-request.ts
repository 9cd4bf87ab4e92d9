/**
 * Parses an opened body and compares the body with its context. The coordinator scheduled and reserved by the context, so a
 * deviating body is rejected.
 */
import {
  type EmbeddingFormat,
  formatFor,
  type ImageFormat,
  type ParsedEmbeddings,
  type ParsedImages,
  type ParsedRequest,
  RequestError,
  type RequestParams,
  type TextFormat,
} from '@inference/formats';
import type { JobContext } from '@inference/protocol';
import { sha256Hex } from '@inference/protocol/crypto';
import type { ConstraintCompiler, OutputConstraint } from './constraint/constraint-compiler.js';
import { JobError } from './job-error.js';

export interface OpenedRequest extends ParsedRequest {
  readonly constraint: OutputConstraint | null;
}

export type Opened =
  | ({ readonly kind: 'text' } & OpenedRequest)
  | ({ readonly kind: 'embeddings' } & ParsedEmbeddings)
  | ({ readonly kind: 'images' } & ParsedImages);

type Parsed = ParsedRequest | ParsedEmbeddings | ParsedImages;

/** Throws {@link JobError} `bad_context`, `invalid_request` or `unsupported`, or the signal's reason. */
export async function readRequest(
  context: JobContext,
  body: Uint8Array,
  constraints: Pick<ConstraintCompiler, 'compile'>,
  signal: AbortSignal,
): Promise<Opened> {
  if (sha256Hex(body) !== context.request_sha256) throw new JobError('bad_context');
  const parsed = parse(formatFor(context.endpoint), body);
  if (!agrees(parsed.params, context)) throw new JobError('bad_context');
  if (isImages(parsed)) return { kind: 'images', ...parsed };
  if (!isText(parsed)) return { kind: 'embeddings', ...parsed };
  return { kind: 'text', ...parsed, constraint: await constraints.compile(parsed, signal) };
}

function isImages(parsed: Parsed): parsed is ParsedImages {
  return parsed.request.task === 'image';
}

function isText(parsed: ParsedRequest | ParsedEmbeddings): parsed is ParsedRequest {
  return parsed.request.task !== 'embed';
}

function parse(format: TextFormat | EmbeddingFormat | ImageFormat, body: Uint8Array): Parsed {
  try {
    return format.parse(body);
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    throw new JobError('invalid_request', isParam(error.param) ? { param: error.param } : {});
  }
}

/** Passes only names that the wire format allows; other values could contain the client's text. */
function isParam(param: string | null): param is string {
  return param !== null && /^[A-Za-z0-9_.[\]]{1,64}$/.test(param);
}

function agrees(params: RequestParams | ParsedImages['params'], context: JobContext): boolean {
  // The limit comes from the client, or else from the coordinator's override, never from both.
  const limit =
    params.maxTokens === null ? context.overrides.max_tokens : context.overrides.max_tokens === undefined ? params.maxTokens : null;
  return (
    params.endpoint === context.endpoint &&
    // Only image requests may omit the model; the coordinator then chooses.
    (params.model ?? context.model) === context.model &&
    params.stream === context.stream &&
    limit === context.max_tokens
  );
}
