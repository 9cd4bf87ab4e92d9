/** `matchesContext` compares the parsed body of a request with the context of its job. */
import type { ParsedEmbeddings, ParsedImages, ParsedRequest, RequestParams } from '@inference/formats';
import type { JobContext } from '@inference/protocol';

export type ParsedBody = ParsedRequest | ParsedEmbeddings | ParsedImages;

/** Whether a parsed body agrees with endpoint, model and `stream` of its job's context. */
export function matchesContext(
  params: RequestParams | ParsedImages['params'],
  context: Pick<JobContext, 'endpoint' | 'model' | 'stream'>,
): boolean {
  return params.endpoint === context.endpoint && isNamed(params, context.model) && params.stream === context.stream;
}

/** Whether the body names the model of the job, as its own or as a fallback. Image requests may omit the model. */
function isNamed({ model, routing }: RequestParams | ParsedImages['params'], jobModel: string): boolean {
  return model === null || model === jobModel || routing?.fallbackModels.includes(jobModel) === true;
}

export function isImages(parsed: ParsedBody): parsed is ParsedImages {
  return parsed.request.task === 'image';
}
