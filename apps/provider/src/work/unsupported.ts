/**
 * Refuses what the engine does not offer, before a job is accepted. An answer that silently left it out would look right
 * and be wrong. Fields are named as the request's own format names them.
 */
import type { ParsedRequest } from '@inference/formats';
import { JobError } from './job-error.js';

export interface FieldNames {
  readonly prompt: string;
  readonly responseFormat: string;
  readonly logprobs: string;
}

const CHAT: FieldNames = { prompt: 'messages', responseFormat: 'response_format', logprobs: 'logprobs' };

/** Names of a request's fields in its own format. */
export function fieldNames({ facts, answer }: Pick<ParsedRequest, 'facts' | 'answer'>): FieldNames {
  switch (facts.endpoint) {
    case '/v1/chat/completions':
      return CHAT;
    case '/v1/responses':
      // A body with `messages` is a chat completion request here, and is answered as one.
      if (answer.idPrefix === 'chatcmpl-') return CHAT;
      return { ...CHAT, prompt: 'input', responseFormat: 'text.format', logprobs: 'top_logprobs' };
    case '/v1/completions':
      return { ...CHAT, prompt: 'prompt' };
    case '/v1/messages':
    case '/v1/messages/count_tokens':
      return { ...CHAT, responseFormat: 'output_config.format' };
    default:
      return facts.endpoint satisfies never;
  }
}

/** Throws {@link JobError} `unsupported` with the name of the field. Counting generates nothing, so it is always possible. */
export function refuseUnsupported(parsed: ParsedRequest): void {
  const { request } = parsed;
  if (request.task === 'count') return;
  if (request.logprobs !== null) throw new JobError('unsupported', { param: fieldNames(parsed).logprobs });
}
