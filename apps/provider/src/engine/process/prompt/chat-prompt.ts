/** `ChatPrompt` renders the chat template and tokenises the result. Control text in messages is plain text, never a control token. */
import { Template } from '@huggingface/jinja';
import type { Token } from 'node-llama-cpp';
import type { ThinkTags } from '../../../models/think-tags.js';
import type { ChatInput, PromptInput, PromptMessage } from '../../messages.js';
import { alternation, ControlTextMask } from './control-text-mask.js';
import { fitConversation } from './fit-conversation.js';
import { type TemplateRequirements, templateRequirements } from './template-requirements.js';

/** The template rejected the messages. The reason may quote them and is dropped. */
export class TemplateError extends Error {
  constructor() {
    super('the chat template refused the messages');
    this.name = 'TemplateError';
  }
}

/** Parts of the model used here. */
export interface PromptModel {
  /** `special`: parse the texts of control tokens as those tokens. */
  tokenize(text: string, special: boolean): Token[];
  readonly tokens: {
    readonly bos: Token | null;
    readonly bosString: string | null;
    readonly eosString: string | null;
    readonly shouldPrependBosToken: boolean;
  };
}

/** The prompt fills the context and leaves no space for an answer. */
export class PromptTooLong extends Error {
  /** `actual`: tokens of the prompt; estimated where a full count would delay other streams. */
  constructor(readonly actual: number) {
    super('the prompt is too long');
    this.name = 'PromptTooLong';
  }
}

/** Characters per remaining token beyond which a prompt is measured by a sample. No language needs as many. */
const SAMPLE_CHARACTERS = 16;

export interface PromptTokens {
  readonly tokens: Token[];
  /** The rendered text, trimmed, ends with an open think tag. */
  readonly startsInsideThinking: boolean;
}

export const CHATML_TEMPLATE =
  "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

export class ChatPrompt {
  readonly #template: Template;
  readonly #controls: RegExp | null;
  readonly #variables: Record<string, unknown>;
  readonly #needs: TemplateRequirements;

  /** Throws when the template is not valid Jinja. */
  constructor(
    private readonly model: PromptModel,
    template: string,
    controlTexts: readonly string[],
    private readonly tags: ThinkTags | null,
  ) {
    this.#template = new Template(template);
    this.#controls = alternation(controlTexts);
    this.#variables = {
      bos_token: model.tokens.bosString ?? '',
      eos_token: model.tokens.eosString ?? '',
    };
    this.#needs = templateRequirements((messages, tools) => this.#fill({ messages, ...(tools.length === 0 ? {} : { tools }) }));
  }

  /** False for a template that rejects every conversation. */
  rendersGreeting(): boolean {
    try {
      return this.#fill({ messages: [{ role: 'user', content: 'Hello' }] }) !== '';
    } catch {
      return false;
    }
  }

  /** Tokens of a prompt, fewer than `limit`. Throws {@link TemplateError} and {@link PromptTooLong}. */
  tokenize(input: PromptInput, limit: number): PromptTokens {
    if (input.type === 'text') {
      this.#refuseTooLong(input.text, limit);
      return { tokens: this.#complete(this.model.tokenize(input.text, false), limit), startsInsideThinking: false };
    }
    const hidden = new ControlTextMask(this.#controls);
    const rendered = this.#render(input, hidden);
    this.#refuseTooLong(rendered, limit);
    const tokens: Token[] = [];
    for (const part of hidden.split(rendered)) {
      for (const token of this.model.tokenize(part.text, part.fromTemplate)) tokens.push(token);
    }
    return { tokens: this.#complete(tokens, limit), startsInsideThinking: this.#opensThinking(rendered) };
  }

  #complete(tokens: Token[], limit: number): Token[] {
    const { bos, shouldPrependBosToken } = this.model.tokens;
    if (shouldPrependBosToken && bos !== null && tokens[0] !== bos) tokens.unshift(bos);
    if (tokens.length >= limit) throw new PromptTooLong(tokens.length);
    return tokens;
  }

  #opensThinking(rendered: string): boolean {
    return this.tags !== null && rendered.trimEnd().endsWith(this.tags.open);
  }

  /** Rejects megabytes of text by a sample, because tokenising blocks every stream of this process. */
  #refuseTooLong(rendered: string, limit: number): void {
    const sample = SAMPLE_CHARACTERS * limit;
    if (rendered.length <= 2 * sample) return;
    const tokens = this.model.tokenize(rendered.slice(0, sample), false).length;
    if (tokens >= limit) throw new PromptTooLong(Math.ceil((tokens / sample) * rendered.length));
  }

  #render(input: ChatInput, hidden: ControlTextMask): string {
    const last = input.continuesLast ? input.messages.at(-1) : undefined;
    const closed = last === undefined ? input.messages : input.messages.slice(0, -1);
    const { messages, tools } = fitConversation({ messages: closed, tools: input.tools }, this.#needs);
    let rendered: string;
    try {
      rendered = this.#fill({
        messages: messages.map((message) => ({ ...(hidden.mask(message) as object), role: message.role })),
        ...(tools.length === 0 ? {} : { tools: hidden.mask(tools) }),
        ...(input.thinking === null ? {} : { enable_thinking: input.thinking }),
      });
    } catch {
      throw new TemplateError();
    }
    if (last !== undefined) return rendered + this.#beginning(last, rendered, hidden);
    return input.answersAtOnce && this.#opensThinking(rendered) ? `${rendered}\n${this.tags?.close}\n\n` : rendered;
  }

  #fill(variables: Record<string, unknown>): string {
    return this.#template.render({ ...this.#variables, add_generation_prompt: true, ...variables });
  }

  /** Beginning of an open assistant turn. Not a thought, so a think section opened by the template is closed first. */
  #beginning(last: PromptMessage, rendered: string, hidden: ControlTextMask): string {
    const thought = this.#opensThinking(rendered) ? `${hidden.text(last.reasoning_content ?? '')}\n${this.tags?.close}\n\n` : '';
    return thought + hidden.text(last.content);
  }
}
