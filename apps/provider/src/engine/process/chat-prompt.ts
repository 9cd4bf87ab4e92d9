/**
 * Renders the model's own chat template and turns the result into tokens. Control tokens come from the template only:
 * where a message's text spells one out, it is carried through the template as a random placeholder and tokenised as
 * plain text, so that no client can close a turn or open another role.
 */
import { randomInt } from 'node:crypto';
import { Template } from '@huggingface/jinja';
import type { Token } from 'node-llama-cpp';
import type { PromptMessage } from '../messages.js';

/** The template refused these messages; its reason may quote them and is therefore not kept. */
export class TemplateError extends Error {
  constructor() {
    super('the chat template refused the messages');
    this.name = 'TemplateError';
  }
}

/** What this needs of a model. */
export interface PromptModel {
  /** `special`: texts of control tokens become those tokens. */
  tokenize(text: string, special: boolean): Token[];
  readonly tokens: {
    readonly bos: Token | null;
    readonly bosString: string | null;
    readonly eosString: string | null;
    readonly shouldPrependBosToken: boolean;
  };
}

/** The prompt fills the context and leaves no room to answer. */
export class PromptTooLong extends Error {
  /** `actual`: tokens of the prompt; an estimate where counting them all would hold up other streams. */
  constructor(readonly actual: number) {
    super('the prompt is too long');
    this.name = 'PromptTooLong';
  }
}

/** Characters per token of room beyond which a prompt is judged by its beginning. No language needs as many. */
const SAMPLE_CHARACTERS = 16;

export interface ChatTokens {
  readonly tokens: Token[];
  /** The rendered text, without trailing white space, ends with the tag that opens a think section. */
  readonly startsInsideThinking: boolean;
}

export const CHATML_TEMPLATE =
  "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

export class ChatPrompt {
  readonly #template: Template;
  readonly #controls: RegExp | null;
  readonly #variables: Record<string, unknown>;

  /** Throws when the template is not valid Jinja. */
  constructor(
    private readonly model: PromptModel,
    template: string,
    controlTexts: readonly string[],
    private readonly openTag: string | null,
  ) {
    this.#template = new Template(template);
    this.#controls = alternation(controlTexts);
    this.#variables = {
      add_generation_prompt: true,
      bos_token: model.tokens.bosString ?? '',
      eos_token: model.tokens.eosString ?? '',
    };
  }

  /** Tokens of a prompt, fewer than `limit`. Throws {@link TemplateError} and {@link PromptTooLong}. */
  tokenize(messages: readonly PromptMessage[], limit: number): ChatTokens {
    const hidden = new HiddenTexts(this.#controls);
    const masked = messages.map((message) => hidden.mask(message));
    const rendered = this.#render(masked);
    this.#refuseTooLong(rendered, limit);
    const tokens: Token[] = [];
    for (const part of hidden.split(rendered)) {
      for (const token of this.model.tokenize(part.text, part.fromTemplate)) tokens.push(token);
    }
    const { bos, shouldPrependBosToken } = this.model.tokens;
    if (shouldPrependBosToken && bos !== null && tokens[0] !== bos) tokens.unshift(bos);
    if (tokens.length >= limit) throw new PromptTooLong(tokens.length);
    return { tokens, startsInsideThinking: this.openTag !== null && rendered.trimEnd().endsWith(this.openTag) };
  }

  /** Megabytes of text are refused by a sample: tokenising blocks every stream of this process. */
  #refuseTooLong(rendered: string, limit: number): void {
    const sample = SAMPLE_CHARACTERS * limit;
    if (rendered.length <= 2 * sample) return;
    const tokens = this.model.tokenize(rendered.slice(0, sample), false).length;
    if (tokens >= limit) throw new PromptTooLong(Math.ceil((tokens / sample) * rendered.length));
  }

  #render(messages: readonly unknown[]): string {
    try {
      return this.#template.render({ ...this.#variables, messages });
    } catch {
      throw new TemplateError();
    }
  }
}

/** Stand-ins for control texts in one prompt. Private-use characters and digits survive every text filter of Jinja. */
class HiddenTexts {
  readonly #originals: string[] = [];
  readonly #mark = `\uE0F0${randomInt(2 ** 47)}${randomInt(2 ** 47)}\uE0F1`;

  constructor(private readonly controls: RegExp | null) {}

  mask(value: unknown, key = ''): unknown {
    if (typeof value === 'string') return key === 'role' ? value : this.#maskText(value);
    if (Array.isArray(value)) return value.map((item) => this.mask(item));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, this.mask(member, name)]));
  }

  *split(rendered: string): Generator<{ text: string; fromTemplate: boolean }> {
    if (this.#originals.length === 0) {
      yield { text: rendered, fromTemplate: true };
      return;
    }
    const parts = rendered.split(new RegExp(`${this.#mark}(\\d+)\uE0F2`));
    for (const [index, part] of parts.entries()) {
      const fromTemplate = index % 2 === 0;
      const text = fromTemplate ? part : (this.#originals[Number(part)] ?? '');
      if (text !== '') yield { text, fromTemplate };
    }
  }

  #maskText(text: string): string {
    if (this.controls === null) return text;
    return text.replace(this.controls, (original) => {
      this.#originals.push(original);
      return `${this.#mark}${this.#originals.length - 1}\uE0F2`;
    });
  }
}

function alternation(texts: readonly string[]): RegExp | null {
  if (texts.length === 0) return null;
  const longestFirst = [...new Set(texts)].sort((a, b) => b.length - a.length);
  return new RegExp(longestFirst.map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|'), 'g');
}
