/** `jobFailureError` converts a provider's report that a request made its job fail into the error for the client. */
import type { JobFailure } from '@inference/protocol';
import { COULD_NOT_PROCESS } from '../input-images/image-reader.js';
import { type ApiError, apiError } from './errors.js';

/** Faults that depend on the model, so only the engine can detect them. Key: field. */
const FAULTS: ReadonlyMap<string, string> = new Map([
  ['logit_bias', 'has a token number that this model does not have.'],
  ['prompt', 'must not be empty for this model.'],
]);

/** `failure` must have blame `client`. */
export function jobFailureError(failure: JobFailure): ApiError {
  const param = failure.param === undefined ? {} : { param: failure.param };
  if (failure.code === 'unsupported') return apiError('unsupported_parameter', atField(failure, unsupportedText(failure)));
  if (failure.code === 'invalid_image') return invalidImage(failure);
  if (failure.code !== 'context_length_exceeded')
    return apiError('invalid_request', atField(failure, FAULTS.get(failure.param ?? '') ?? 'is not valid.'));
  const { limit, actual } = failure;
  if (limit === undefined || actual === undefined) return apiError('context_length_exceeded', param);
  return apiError('context_length_exceeded', { tooLong: { limit, actual }, ...param });
}

function invalidImage({ param }: JobFailure): ApiError {
  const message = `${param ?? 'An image'}: ${COULD_NOT_PROCESS} The machine could not decode it. Save it again as PNG or JPEG.`;
  return apiError('invalid_request', { message, ...(param === undefined ? {} : { param }) });
}

const TOO_MANY_TOKENS =
  'permits a response that is too large to be sent at once. Set stream to true, or ask for fewer tokens, choices or log probabilities.';
/** Texts for a response that would be too large. Key: field. */
const TOO_LARGE: ReadonlyMap<string, string> = new Map([
  ['input', 'has too many texts for one response of this model. Send fewer per request.'],
  ['max_tokens', TOO_MANY_TOKENS],
  ['max_output_tokens', TOO_MANY_TOKENS],
]);

/** Fields that contain a JSON Schema or parts of one. */
const SCHEMA_FIELD = /schema|^tools|^guided_|^structured_outputs|^format|^response_format\.value/;

/** Text for an unsupported field. `limit`: maximum of a count in a schema, such as `maxItems`, because the grammar grows with it. */
function unsupportedText({ param = '', limit }: JobFailure): string {
  if (limit !== undefined) {
    return `is limited to ${limit} here, because enforcing the schema takes memory for each item. Lower it, or omit it and validate the answer yourself.`;
  }
  const tooLarge = TOO_LARGE.get(param);
  if (tooLarge !== undefined) return tooLarge;
  if (!SCHEMA_FIELD.test(param)) return 'is not offered for this model.';
  return 'cannot be enforced while the answer is written: the keyword is not supported, or the schema is too complex. Simplify it, or set strict to false where the format has it.';
}

/** Includes the field name in the message, because the Messages format has no separate member for the field. */
function atField({ param }: JobFailure, fault: string): { param?: string; message?: string } {
  return param === undefined ? {} : { param, message: `${param} ${fault}` };
}
