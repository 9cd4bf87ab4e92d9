/** Renders a chat completion as one JSON body in the shape of the real API. */
import type { Envelope, PlainRenderer } from '../format.js';
import { openAiUsage } from '../open-ai-usage.js';
import { Transcript } from '../output/transcript.js';
import type { OutputEvent } from '../output-event.js';
import { type ChatAnswerOptions, SERVICE_TIER, shownReason } from './answer-options.js';

export class ChatPlainRenderer implements PlainRenderer {
  readonly #envelope: Envelope;
  readonly #options: ChatAnswerOptions;
  readonly #transcript: Transcript;

  constructor(envelope: Envelope, options: ChatAnswerOptions) {
    this.#envelope = envelope;
    this.#options = options;
    this.#transcript = new Transcript(options);
  }

  add(...events: readonly OutputEvent[]): void {
    for (const event of events) this.#transcript.add(event);
  }

  body(): string {
    const finish = this.#transcript.finished();
    const { responseId, created, model, systemFingerprint } = this.#envelope;
    return JSON.stringify({
      id: responseId,
      object: 'chat.completion',
      created,
      model,
      ...(systemFingerprint === undefined ? {} : { system_fingerprint: systemFingerprint }),
      ...(this.#options.reportsServiceTier ? { service_tier: SERVICE_TIER } : {}),
      choices: [
        {
          index: 0,
          message: this.#message(),
          logprobs: this.#options.logprobs ? { content: this.#transcript.logprobs, refusal: null } : null,
          finish_reason: shownReason(finish.reason, this.#options),
        },
      ],
      usage: openAiUsage(finish),
    });
  }

  #message() {
    const { text, reasoning, toolCalls } = this.#transcript;
    const [call] = toolCalls;
    return {
      role: 'assistant',
      content: text === '' && toolCalls.length > 0 ? null : text,
      refusal: null,
      ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
      ...(this.#options.legacyFunctions && call !== undefined
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
}
