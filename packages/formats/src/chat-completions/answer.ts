/** `chatAnswer` returns the renderers for the response to a chat completion request, streamed or not. */
import { openAiErrorBody } from '../errors/open-ai-error.js';
import type { AnswerFormat, PlainRenderer, ResponseMetadata } from '../format.js';
import { openAiUsage } from '../open-ai-usage.js';
import { choicesRenderer, type Transcript } from '../output/transcript.js';
import { sseData } from '../sse.js';
import { type ChatAnswerOptions, ChatStreamRenderer, chatSignatureEvent, finishReasonOf, SERVICE_TIER } from './render-stream.js';

export function chatAnswer(options: ChatAnswerOptions): AnswerFormat {
  return {
    idPrefix: 'chatcmpl-',
    terminalEvents: [],
    bodyMember: { name: 'object', value: 'chat.completion' },
    stream: (responseMetadata) => new ChatStreamRenderer(responseMetadata, options),
    plain: (responseMetadata) => chatPlainRenderer(responseMetadata, options),
    signatureEvent: chatSignatureEvent,
    streamError: (error) => sseData(openAiErrorBody(error)),
  };
}

function chatPlainRenderer({ responseId, created, model, systemFingerprint }: ResponseMetadata, options: ChatAnswerOptions): PlainRenderer {
  return choicesRenderer(options, (choices, finish) => ({
    id: responseId,
    object: 'chat.completion',
    created,
    model,
    ...(systemFingerprint === undefined ? {} : { system_fingerprint: systemFingerprint }),
    ...(options.reportsServiceTier ? { service_tier: SERVICE_TIER } : {}),
    choices: choices.map(({ transcript, reason }, index) => ({
      index,
      message: messageOf(transcript, options),
      logprobs: options.logprobs ? { content: transcript.logprobs, refusal: null } : null,
      finish_reason: finishReasonOf(reason, options),
    })),
    usage: openAiUsage(finish),
  }));
}

function messageOf({ text, reasoning, toolCalls }: Transcript, { legacyFunctions }: ChatAnswerOptions) {
  const [call] = toolCalls;
  return {
    role: 'assistant',
    content: text === '' && toolCalls.length > 0 ? null : text,
    refusal: null,
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    ...(legacyFunctions && call !== undefined
      ? { function_call: { name: call.name, arguments: call.arguments } }
      : toolCalls.length === 0
        ? {}
        : {
            tool_calls: toolCalls.map((call) => ({
              id: call.id,
              type: 'function',
              function: { name: call.name, arguments: call.arguments },
            })),
          }),
  };
}
