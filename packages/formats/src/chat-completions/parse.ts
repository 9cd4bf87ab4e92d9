/** From the bytes of a chat completion request to the internal job and the facts that a coordinator routes by. */
import { RequestError } from '../errors.js';
import type { ParsedRequest, Sampling, TextRequest } from '../format.js';
import { readJsonBody } from '../json-body.js';
import { schemaCheck } from '../schema-check.js';
import { normaliseMessages } from './messages.js';
import { isGiven, refuseUnsupported } from './refusals.js';
import { type ChatCompletionRequest, ChatCompletionRequestSchema } from './schema.js';

export const ENDPOINT = '/v1/chat/completions';

/** Temperature when the client names none (specification: 1.0). */
const DEFAULT_TEMPERATURE = 1;

const check = schemaCheck(ChatCompletionRequestSchema);

/** Throws RequestError. */
export function parseChatCompletion(bytes: Uint8Array): ParsedRequest {
  const body = check(readJsonBody(bytes));
  refuseUnsupported(body);
  const stream = body.stream ?? false;
  if (!stream && isGiven(body.stream_options)) {
    throw new RequestError('invalid_request', 'stream_options', 'stream_options is only allowed when stream is true.');
  }
  const request: TextRequest = {
    model: body.model,
    stream,
    maxTokens: maxTokensOf(body),
    messages: normaliseMessages(body.messages),
    sampling: samplingOf(body),
    stop: stopOf(body),
    includeUsage: body.stream_options?.include_usage ?? false,
  };
  const { model, maxTokens } = request;
  return { request, facts: { endpoint: ENDPOINT, model, stream, maxTokens, providerSerial: body.provider_serial ?? null } };
}

/** The two names mean the same here, since hidden tokens count towards both; a client that gives both must mean one limit. */
function maxTokensOf(body: ChatCompletionRequest): number | null {
  const older = body.max_tokens ?? null;
  const newer = body.max_completion_tokens ?? null;
  if (older !== null && newer !== null && older !== newer) {
    throw new RequestError('invalid_request', 'max_tokens', 'max_tokens and max_completion_tokens differ. Give only one of them.');
  }
  return newer ?? older;
}

function samplingOf(body: ChatCompletionRequest): Sampling {
  // A nucleus of mass 0 holds the most likely token alone. Engines read 0 in different ways, so it is said as greedy.
  const greedy = body.top_p === 0;
  return {
    temperature: greedy ? 0 : (body.temperature ?? DEFAULT_TEMPERATURE),
    topP: greedy ? null : (body.top_p ?? null),
    seed: body.seed ?? null,
    frequencyPenalty: body.frequency_penalty ?? null,
    presencePenalty: body.presence_penalty ?? null,
  };
}

function stopOf(body: ChatCompletionRequest): readonly string[] {
  const given = body.stop ?? [];
  return typeof given === 'string' ? [given] : [...new Set(given)];
}
