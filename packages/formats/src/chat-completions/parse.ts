/** Parses a chat completion request into the internal `TextRequest` and the parameters for routing. */

import type { Endpoint } from '@inference/protocol';
import { choiceParams } from '../choices.js';
import { requestedFormat } from '../constraints.js';
import { isFilled, isPresent, rejectInvalid, rejectUnsupported } from '../errors/reject.js';
import { stopOf } from '../fields.js';
import type { ParsedRequest, ParseOptions } from '../format.js';
import { ImageReader } from '../input-images/image-reader.js';
import { readJsonBody } from '../json/json-body.js';
import { bodyReader } from '../members/body-reader.js';
import type { TextRequest } from '../request.js';
import { routingOf } from '../routing.js';
import { samplingOf } from '../sampling.js';
import { chatAnswer } from './answer.js';
import { CHAT_MEMBERS } from './members.js';
import { normaliseMessages } from './messages.js';
import { type ChatCompletionRequest, ChatCompletionRequestSchema } from './schema.js';
import { responseFormatOf, toolsOf } from './tools.js';

const read = bodyReader(ChatCompletionRequestSchema, CHAT_MEMBERS);

/** Parses the body of a request to `/v1/chat/completions`. Throws RequestError. */
export function parseChatCompletion(bytes: Uint8Array, options?: ParseOptions): ParsedRequest {
  return chatCompletionOf(readJsonBody(bytes), '/v1/chat/completions', options);
}

/** Parses a decoded JSON body, which may come from `/v1/responses`. Throws RequestError. */
export function chatCompletionOf(json: unknown, endpoint: Endpoint, options?: ParseOptions): ParsedRequest {
  const { body, ignored } = read(json, options);
  rejectUnsupportedMembers(body);
  const stream = body.stream ?? false;
  if (!stream && isPresent(body.stream_options)) {
    rejectInvalid('stream_options', 'stream_options is only allowed when stream is true.');
  }
  const request: TextRequest = {
    task: 'generate',
    model: body.model,
    stream,
    maxTokens: maxTokensOf(body),
    choices: body.n ?? 1,
    prompt: { type: 'chat', messages: normaliseMessages(body.messages, new ImageReader(options?.imageAt)), continuesLast: false },
    ...toolsOf(body),
    parallelToolCalls: !isFilled(body.functions) && (body.parallel_tool_calls ?? true),
    responseFormat: requestedFormat(body, responseFormatOf(body.response_format)),
    sampling: samplingOf(body),
    logprobs: logprobsOf(body),
    thinking: thinkingOf(body),
    stop: stopOf(body.stop),
  };
  const { model, maxTokens, choices } = request;
  return {
    request,
    params: {
      endpoint,
      model,
      stream,
      ...choiceParams(choices, maxTokens),
      providerSerial: body.provider_serial ?? null,
      ...routingOf(body),
    },
    answer: chatAnswer({
      includeUsage: body.stream_options?.include_usage ?? false,
      showReasoning: body.include_reasoning ?? false,
      logprobs: request.logprobs !== null,
      reportsServiceTier: isPresent(body.service_tier),
      legacyFunctions: isFilled(body.functions),
    }),
    ignored: [...ignored, ...listIgnoredMembers(body)],
  };
}

/** Whether the model should think; null: the model's default. Effort `none` turns thinking off; other efforts have no effect. */
function thinkingOf({
  reasoning_effort,
  reasoning,
  enable_thinking,
  chat_template_kwargs,
  thinking,
}: ChatCompletionRequest): boolean | null {
  if (reasoning_effort === 'none' || reasoning?.effort === 'none') return false;
  if (thinking?.type === 'disabled') return false;
  return enable_thinking ?? chat_template_kwargs?.enable_thinking ?? reasoning?.enabled ?? null;
}

/** Members that the parser reads, but whose values in this request have no effect. */
function listIgnoredMembers(body: ChatCompletionRequest): readonly string[] {
  const ignored: string[] = [];
  if (isPresent(body.reasoning_effort) && body.reasoning_effort !== 'none') ignored.push('reasoning_effort');
  if (isPresent(body.reasoning?.effort) && body.reasoning.effort !== 'none') ignored.push('reasoning.effort');
  if (body.messages.some(({ role, name }) => role !== 'function' && role !== 'tool' && isPresent(name))) ignored.push('messages[].name');
  return ignored;
}

/** Both names mean the same limit, because both include hidden tokens. Rejects two different values. */
function maxTokensOf(body: ChatCompletionRequest): number | null {
  const older = body.max_tokens ?? null;
  const newer = body.max_completion_tokens ?? null;
  if (older !== null && newer !== null && older !== newer) {
    rejectInvalid('max_tokens', 'max_tokens and max_completion_tokens differ. Give only one of them.');
  }
  return newer ?? older;
}

/** Number of alternative tokens per position; null: no log probabilities. */
function logprobsOf(body: ChatCompletionRequest): number | null {
  const alternatives = body.top_logprobs ?? 0;
  if (body.logprobs === true) return alternatives;
  if (alternatives > 0) rejectInvalid('top_logprobs', 'top_logprobs is only allowed when logprobs is true.');
  return null;
}

function rejectUnsupportedMembers(body: ChatCompletionRequest): void {
  if (body.modalities?.some((modality) => modality !== 'text'))
    rejectUnsupported('modalities', 'modalities other than text are not supported.');
  if (isPresent(body.audio)) rejectUnsupported('audio', 'audio is not supported.');
  if (isPresent(body.web_search_options)) rejectUnsupported('web_search_options', 'web_search_options are not supported.');
}
