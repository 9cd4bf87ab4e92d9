/** Parses a legacy completion request, in which the model continues a text without a chat template. */
import { responseFormatOf } from '../chat-completions/tools.js';
import { choiceParams } from '../choices.js';
import { requestedFormat } from '../constraints.js';
import { isPresent, rejectInvalid, rejectUnsupported } from '../errors/reject.js';
import { stopOf } from '../fields.js';
import type { ParsedRequest, ParseOptions } from '../format.js';
import { readJsonBody } from '../json/json-body.js';
import { bodyReader } from '../members/body-reader.js';
import type { TextRequest } from '../request.js';
import { routingOf } from '../routing.js';
import { samplingOf } from '../sampling.js';
import { completionAnswer } from './answer.js';
import { COMPLETION_MEMBERS } from './members.js';
import { type CompletionRequest, CompletionRequestSchema } from './schema.js';

const ENDPOINT = '/v1/completions';

const read = bodyReader(CompletionRequestSchema, COMPLETION_MEMBERS);

/** Parses the body of a request to `/v1/completions`. Throws RequestError. */
export function parseCompletion(bytes: Uint8Array, options?: ParseOptions): ParsedRequest {
  const { body, ignored } = read(readJsonBody(bytes), options);
  checkBestOf(body);
  const stream = body.stream ?? false;
  if (!stream && isPresent(body.stream_options)) {
    rejectInvalid('stream_options', 'stream_options is only allowed when stream is true.');
  }
  const prompt = promptOf(body);
  const echo = echoOf(body, prompt);
  const request: TextRequest = {
    task: 'generate',
    model: body.model,
    stream,
    maxTokens: body.max_tokens ?? null,
    choices: body.n ?? 1,
    prompt: { type: 'text', text: prompt, ...(body.suffix ? { suffix: body.suffix } : {}) },
    tools: [],
    toolChoice: { type: 'auto' },
    parallelToolCalls: true,
    responseFormat: requestedFormat(body, responseFormatOf(body.response_format)),
    sampling: samplingOf(body),
    logprobs: body.logprobs ?? null,
    thinking: null,
    stop: stopOf(body.stop),
  };
  const { model, maxTokens, choices, logprobs } = request;
  return {
    request,
    params: {
      endpoint: ENDPOINT,
      model,
      stream,
      ...choiceParams(choices, maxTokens),
      providerSerial: body.provider_serial ?? null,
      ...routingOf(body),
    },
    answer: completionAnswer({ includeUsage: body.stream_options?.include_usage ?? false, logprobs: logprobs !== null, echo }),
    ignored,
  };
}

function promptOf({ prompt }: CompletionRequest): string {
  if (typeof prompt === 'string') return prompt;
  const [only, ...others] = prompt;
  if (typeof only === 'string' && others.length === 0) return only;
  return rejectUnsupported('prompt', 'prompt must be one string. Several prompts and arrays of tokens are not supported.');
}

/** Choices are not ranked, so `best_of` must equal `n`. Also accepts 0 and 1, which clients send by default. */
function checkBestOf({ best_of, n }: CompletionRequest): void {
  const choices = n ?? 1;
  if (!isPresent(best_of) || best_of <= 1 || best_of === choices) return;
  if (best_of < choices) rejectInvalid('best_of', 'best_of must not be smaller than n.');
  rejectUnsupported('best_of', 'best_of above n is not supported, because choices are not ranked. Leave it out.');
}

/** Maximum length of the echo in all choices together, in UTF-16 units. */
const MAX_ECHO_LENGTH = 1_000_000;

function echoOf({ echo, n, logprobs }: CompletionRequest, prompt: string): string {
  if (echo !== true) return '';
  if (isPresent(logprobs))
    rejectUnsupported('echo', 'echo with logprobs is not supported: the tokens of the prompt have no log probabilities here.');
  if (prompt.length * (n ?? 1) > MAX_ECHO_LENGTH) {
    rejectUnsupported('echo', `echo is limited to ${MAX_ECHO_LENGTH} characters in all choices together.`);
  }
  return prompt;
}
