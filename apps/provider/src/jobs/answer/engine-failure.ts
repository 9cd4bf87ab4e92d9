/** `failureOf` maps the engine's failure of a generation or embedding request to the failure reported for the job. */
import type { GenerationError } from '../../engine/generation.js';
import type { FieldNames } from '../field-names.js';
import { JobError } from '../job-error.js';

/** @param fields Field names in the request's format. */
export function failureOf({ ended }: GenerationError, fields: FieldNames): JobError {
  switch (ended.kind) {
    case 'context_length_exceeded':
      return new JobError('context_length_exceeded', { limit: ended.limit, actual: ended.actual });
    case 'invalid_request':
      return new JobError('invalid_request', { param: paramOf(ended.field, fields) });
    case 'unsupported':
      return new JobError('unsupported', { param: ended.field });
    case 'invalid_image':
      return new JobError('invalid_image', { param: ended.path });
    case 'cancelled':
      return new JobError('cancelled');
    case 'engine_failed':
      return new JobError('engine_failed');
    default:
      return ended satisfies never;
  }
}

function paramOf(field: 'prompt' | 'grammar' | 'input' | 'logit_bias', fields: FieldNames): string {
  if (field === 'logit_bias') return field;
  return field === 'grammar' ? fields.responseFormat : fields.prompt;
}
