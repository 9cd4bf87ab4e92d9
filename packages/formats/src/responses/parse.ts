/**
 * Parses a request to `/v1/responses` into the internal `TextRequest` and the parameters for routing.
 *
 * A body with `messages` instead of `input` is treated as a chat completion request.
 */
import { chatCompletionOf } from '../chat-completions/parse.js';
import { RequestError } from '../errors/errors.js';
import { isPresent, rejectUnsupported } from '../errors/reject.js';
import { stopOf } from '../fields.js';
import type { ParsedRequest, ParseOptions } from '../format.js';
import { ImageReader } from '../input-images/image-reader.js';
import { readJsonBody } from '../json/json-body.js';
import { bodyReader } from '../members/body-reader.js';
import type { TextRequest } from '../request.js';
import { routingOf } from '../routing.js';
import { samplingOf } from '../sampling.js';
import { responsesAnswer } from './answer.js';
import { conversationOf, ignoredItems } from './conversation.js';
import { echoOf } from './echo.js';
import { RESPONSES_MEMBERS } from './members.js';
import { type ResponsesRequest, ResponsesRequestSchema } from './schema.js';
import { ignoredTools, textFormatOf, toolsOf } from './tools.js';

const ENDPOINT = '/v1/responses';

const read = bodyReader(ResponsesRequestSchema, RESPONSES_MEMBERS);

/** Parses the body of a request to `/v1/responses`. Throws RequestError. */
export function parseResponses(bytes: Uint8Array, options?: ParseOptions): ParsedRequest {
  const json = readJsonBody(bytes);
  if (hasMember(json, 'messages') && !hasMember(json, 'input')) return chatCompletionOf(json, ENDPOINT, options);
  const { body, ignored } = read(json, options);
  rejectUnsupportedMembers(body);
  const stream = body.stream ?? false;
  const request: TextRequest = {
    task: 'generate',
    model: body.model,
    stream,
    maxTokens: body.max_output_tokens ?? null,
    choices: 1,
    prompt: { type: 'chat', messages: conversationOf(body, new ImageReader(options?.imageAt)), continuesLast: false },
    ...toolsOf(body),
    parallelToolCalls: body.parallel_tool_calls ?? true,
    responseFormat: textFormatOf(body),
    // `logit_bias` is absent or empty here.
    sampling: samplingOf({ ...body, logit_bias: null }),
    logprobs: logprobsOf(body),
    thinking: thinkingOf(body),
    stop: stopOf(body.stop),
  };
  const { model, maxTokens } = request;
  return {
    request,
    params: { endpoint: ENDPOINT, model, stream, maxTokens, providerSerial: body.provider_serial ?? null, ...routingOf(body) },
    answer: responsesAnswer(echoOf(body, request)),
    ignored: [...ignored, ...ignoredTools(body), ...ignoredItems(body), ...listIgnoredMembers(body)],
  };
}

/** Whether the model should think; null: the model's default. */
function thinkingOf({ reasoning }: ResponsesRequest): boolean | null {
  return reasoning?.effort === 'none' ? false : (reasoning?.enabled ?? null);
}

/** Members that the parser reads, but whose values in this request have no effect. */
function listIgnoredMembers({ reasoning, include, truncation }: ResponsesRequest): readonly string[] {
  return [
    ...(isPresent(reasoning?.effort) && reasoning.effort !== 'none' ? ['reasoning.effort'] : []),
    ...(include ?? []).flatMap((name) => (/^[a-z_.]{1,64}$/.test(name) && name !== INCLUDED_LOGPROBS ? [`include (${name})`] : [])),
    ...(truncation === 'auto' ? ['truncation'] : []),
  ];
}

/** Entry of `include` that asks for log probabilities. */
const INCLUDED_LOGPROBS = 'message.output_text.logprobs';

/** Whether the body has the member, with a value other than null. */
function hasMember(json: unknown, name: string): boolean {
  return typeof json === 'object' && json !== null && isPresent((json as Readonly<Record<string, unknown>>)[name]);
}

/** Number of alternative tokens per position; null: no log probabilities. */
function logprobsOf(body: ResponsesRequest): number | null {
  const alternatives = body.top_logprobs ?? 0;
  const included = body.include?.includes(INCLUDED_LOGPROBS) ?? false;
  return included || alternatives > 0 ? alternatives : null;
}

function rejectUnsupportedMembers(body: ResponsesRequest): void {
  if (isPresent(body.previous_response_id)) {
    const message =
      'previous_response_id is not known: responses are not stored here. Send the whole conversation as input. With store: false, SDKs do so.';
    throw new RequestError('previous_response_not_found', 'previous_response_id', message);
  }
  if (isPresent(body.conversation))
    rejectUnsupported(
      'conversation',
      'conversation is not supported: nothing is stored here. Leave it out, and send the earlier messages and answers as items of input.',
    );
  if (isPresent(body.n) && body.n !== 1) rejectUnsupported('n', 'n must be 1: one response is generated per request.');
  if (isPresent(body.logit_bias) && Object.keys(body.logit_bias).length > 0)
    rejectUnsupported('logit_bias', 'logit_bias is not supported.');
  if (body.background === true)
    rejectUnsupported('background', 'background is not supported: nothing is stored here. Leave it out, and use stream for long answers.');
  if (isPresent(body.prompt)) rejectUnsupported('prompt', 'prompt templates are not supported. Use instructions and input.');
}
