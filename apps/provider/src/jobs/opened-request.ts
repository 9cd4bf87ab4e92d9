/** `openRequest` compiles a parsed request's constraint; `matchesContext` compares the request with the job's context. */
import type { ParsedEmbeddings, ParsedImages, ParsedRequest, RequestParams } from '@inference/formats';
import type { JobContext } from '@inference/protocol';
import type { ConstraintCompiler, OutputConstraint } from './constraint/constraint-compiler.js';

export interface OpenedRequest extends ParsedRequest {
  readonly constraint: OutputConstraint | null;
}

export type Opened =
  | ({ readonly kind: 'text' } & OpenedRequest)
  | ({ readonly kind: 'embeddings' } & ParsedEmbeddings)
  | ({ readonly kind: 'images' } & ParsedImages);

export type Parsed = ParsedRequest | ParsedEmbeddings | ParsedImages;

/** Compiles the constraint of a text request, with the job's cache scope. Throws {@link JobError} `invalid_request` or `unsupported`, or the signal's reason. */
export async function openRequest(
  parsed: Parsed,
  cacheScope: string | null,
  constraints: Pick<ConstraintCompiler, 'compile'>,
  signal: AbortSignal,
): Promise<Opened> {
  if (isImages(parsed)) return { kind: 'images', ...parsed };
  if (!isText(parsed)) return { kind: 'embeddings', ...parsed };
  return { kind: 'text', ...parsed, constraint: await constraints.compile(parsed, signal, cacheScope) };
}

/** Whether a parsed body agrees with endpoint, model and `stream` of its job's context. */
export function matchesContext(
  params: RequestParams | ParsedImages['params'],
  context: Pick<JobContext, 'endpoint' | 'model' | 'stream'>,
): boolean {
  return params.endpoint === context.endpoint && isNamed(params, context.model) && params.stream === context.stream;
}

/** Whether the body names the model, as its own or a fallback. Image requests may omit the model. */
function isNamed({ model, routing }: RequestParams | ParsedImages['params'], chosen: string): boolean {
  return model === null || model === chosen || routing?.fallbackModels.includes(chosen) === true;
}

export function isImages(parsed: Parsed): parsed is ParsedImages {
  return parsed.request.task === 'image';
}

function isText(parsed: ParsedRequest | ParsedEmbeddings): parsed is ParsedRequest {
  return parsed.request.task !== 'embed';
}
