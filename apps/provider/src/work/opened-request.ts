/**
 * Reads an opened body and holds it against its context. The coordinator decided and reserved by what it said in the
 * context; a body that says otherwise is not run.
 */
import {
  type EmbeddingFormat,
  formatFor,
  type ImageFormat,
  type ParsedEmbeddings,
  type ParsedRequest,
  RequestError,
  type RequestFacts,
  type TextFormat,
} from '@inference/formats';
import type { JobContext } from '@inference/protocol';
import { sha256Hex } from '@inference/protocol/crypto';
import { JobError } from './job-error.js';
import { type OutputForm, outputForm } from './output-form.js';

export interface OpenedRequest extends ParsedRequest {
  readonly form: OutputForm | null;
}

export type Opened = ({ readonly kind: 'text' } & OpenedRequest) | ({ readonly kind: 'embeddings' } & ParsedEmbeddings);

/** Throws {@link JobError} `bad_context`, `invalid_request` or `unsupported`. */
export function readRequest(context: JobContext, body: Uint8Array): Opened {
  if (sha256Hex(body) !== context.request_sha256) throw new JobError('bad_context');
  const format = formatFor(context.endpoint);
  // No engine here makes images yet.
  if (isImageFormat(format)) throw new JobError('unsupported');
  const parsed = parse(format, body);
  if (!agrees(parsed.facts, context)) throw new JobError('bad_context');
  return isText(parsed) ? { kind: 'text', ...parsed, form: outputForm(parsed) } : { kind: 'embeddings', ...parsed };
}

function isImageFormat(format: ReturnType<typeof formatFor>): format is ImageFormat {
  return format.endpoint === '/v1/images/generations';
}

function isText(parsed: ParsedRequest | ParsedEmbeddings): parsed is ParsedRequest {
  return parsed.request.task !== 'embed';
}

function parse(format: TextFormat | EmbeddingFormat, body: Uint8Array): ParsedRequest | ParsedEmbeddings {
  try {
    return format.parse(body);
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    throw new JobError('invalid_request', isParam(error.param) ? { param: error.param } : {});
  }
}

/** Only a name that the wire allows goes out; anything else could carry words of the client's body. */
function isParam(param: string | null): param is string {
  return param !== null && /^[A-Za-z0-9_.[\]]{1,64}$/.test(param);
}

function agrees(facts: RequestFacts, context: JobContext): boolean {
  // The limit is the client's own, or else the one that the coordinator put in its place; never both, never another.
  const limit =
    facts.maxTokens === null ? context.overrides.max_tokens : context.overrides.max_tokens === undefined ? facts.maxTokens : null;
  return (
    facts.endpoint === context.endpoint && facts.model === context.model && facts.stream === context.stream && limit === context.max_tokens
  );
}
