/**
 * Parses a request to `/v1/responses` into the internal `TextRequest` and the parameters for routing.
 *
 * A body with `messages` instead of `input` is treated as a chat completion request.
 */
import { chatCompletionOf } from '../chat-completions/parse.js';
import { RequestError } from '../errors/errors.js';
import { isPresent, refuse } from '../errors/refusal.js';
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

/** Throws RequestError. */
export function parseResponses(bytes: Uint8Array, options?: ParseOptions): ParsedRequest {
  const json = readJsonBody(bytes);
  if (hasMember(json, 'messages') && !hasMember(json, 'input')) return chatCompletionOf(json, ENDPOINT, options);
  const { body, ignored } = read(json, options);
  refuseUnsupported(body);
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
    sampling: samplingOf({ ...body, logit_bias: null }),
    logprobs: logprobsOf(body),
    thinking: body.reasoning?.effort === 'none' ? false : (body.reasoning?.enabled ?? null),
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

/** Names of members whose values have no effect. */
function listIgnoredMembers({ reasoning, include, truncation }: ResponsesRequest): readonly string[] {
  return [
    ...(isPresent(reasoning?.effort) && reasoning.effort !== 'none' ? ['reasoning.effort'] : []),
    ...(include ?? []).flatMap((name) => (/^[a-z_.]{1,64}$/.test(name) && name !== LOGPROBS ? [`include (${name})`] : [])),
    ...(truncation === 'auto' ? ['truncation'] : []),
  ];
}

const LOGPROBS = 'message.output_text.logprobs';

function hasMember(json: unknown, name: string): boolean {
  return typeof json === 'object' && json !== null && isPresent((json as Readonly<Record<string, unknown>>)[name]);
}

function logprobsOf(body: ResponsesRequest): number | null {
  const alternatives = body.top_logprobs ?? 0;
  const included = body.include?.includes(LOGPROBS) ?? false;
  return included || alternatives > 0 ? alternatives : null;
}

function refuseUnsupported(body: ResponsesRequest): void {
  if (isPresent(body.previous_response_id)) {
    const message =
      'previous_response_id is not known: responses are not stored here. Send the whole conversation as input, and store: false, at which SDKs do so by themselves.';
    throw new RequestError('previous_response_not_found', 'previous_response_id', message);
  }
  if (isPresent(body.conversation))
    refuse(
      'conversation',
      'conversation is not supported: nothing is stored here. Leave it out, and send the earlier messages and answers as items of input.',
    );
  if (isPresent(body.n) && body.n !== 1) refuse('n', 'n must be 1: one response is generated per request.');
  if (isPresent(body.logit_bias) && Object.keys(body.logit_bias).length > 0) refuse('logit_bias', 'logit_bias is not supported.');
  if (body.background === true)
    refuse('background', 'background is not supported: nothing is stored here. Leave it out, and use stream for long answers.');
  if (isPresent(body.prompt)) refuse('prompt', 'prompt templates are not supported. Use instructions and input.');
}
