/**
 * Reads an opened body and holds it against its context. The coordinator decided and reserved by what it said in the
 * context; a body that says otherwise is not run.
 */
import { formatFor, type ParsedRequest, RequestError, type RequestFacts, type TextFormat } from '@inference/formats';
import type { JobContext } from '@inference/protocol';
import { sha256Hex } from '@inference/protocol/crypto';
import type { OutputGrammar } from '../engine/messages.js';
import { JobError } from './job-error.js';
import { outputGrammar } from './output-grammar.js';
import { refuseUnsupported } from './unsupported.js';

export interface OpenedRequest extends ParsedRequest {
  readonly grammar: OutputGrammar | null;
}

/** Throws {@link JobError} `bad_context`, `invalid_request` or `unsupported`. */
export function readRequest(context: JobContext, body: Uint8Array): OpenedRequest {
  if (sha256Hex(body) !== context.request_sha256) throw new JobError('bad_context');
  const parsed = parse(formatFor(context.endpoint), body);
  if (!agrees(parsed.facts, context)) throw new JobError('bad_context');
  refuseUnsupported(parsed);
  return { ...parsed, grammar: outputGrammar(parsed) };
}

function parse(format: TextFormat, body: Uint8Array): ParsedRequest {
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
