/**
 * `ChatPrompt` turns the prompt of a request into tokens: renders the model's chat template and tokenises the result.
 *
 * The text of a control token, such as `<|im_end|>`, in a client's message stays plain text.
 */
import { Template } from '@huggingface/jinja';
import type { Token } from 'node-llama-cpp';
import type { ThinkTags } from '../../../models/think-tags.js';
import type { ChatInput, PromptInput, PromptMessage, TemplateMessage } from '../../messages.js';
import type { MediaChunk } from '../decoding/media-span.js';
import { alternation, ControlTextMask } from './control-text-mask.js';
import { fitConversation } from './fit-conversation.js';
import { NO_IMAGES, type PreparedImage, type PromptImages } from './prompt-images.js';
import { type TemplateRequirements, templateRequirements } from './template-requirements.js';

/** The template rejected the messages or drops an image. The template's own error may quote messages and is dropped. */
export class TemplateError extends Error {
  constructor() {
    super('the chat template refused the messages');
    this.name = 'TemplateError';
  }
}

/** The request has a `suffix`, but the model has no fill-in-the-middle tokens. */
export class InfillUnsupported extends Error {
  constructor() {
    super('the model has no fill-in-the-middle tokens');
    this.name = 'InfillUnsupported';
  }
}

export interface PromptModel {
  /** @param special Whether the texts of control tokens become control tokens. */
  tokenize(text: string, special: boolean): Token[];
  readonly tokens: {
    readonly bos: Token | null;
    readonly bosString: string | null;
    readonly eosString: string | null;
    readonly shouldPrependBosToken: boolean;
    /** Fill-in-the-middle tokens: before the prefix, the suffix and the answer. Null or absent if the model has none. */
    readonly infill?: { readonly prefix: Token | null; readonly suffix: Token | null; readonly middle: Token | null };
  };
}

/** The prompt fills the context and leaves no space for an answer. */
export class PromptTooLong extends Error {
  /** @param actual Tokens of the prompt, estimated if a full count would delay other streams. */
  constructor(readonly actual: number) {
    super('the prompt is too long');
    this.name = 'PromptTooLong';
  }
}

/** Characters to sample per token of the limit: more than texts have per token, so the sample of a far too long text exceeds the limit. */
const SAMPLE_CHARACTERS = 16;

export interface PromptTokens {
  readonly tokens: Token[];
  /** Parts of images, in order. */
  readonly media: readonly MediaChunk[];
  /** Whether the rendered text, trimmed, ends with an open think tag. */
  readonly startsInsideThinking: boolean;
}

const GREETING = 'Hello';

/** Template for models without one whose vocabulary has the tokens of ChatML, OpenAI's chat format. */
export const CHATML_TEMPLATE =
  "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

export class ChatPrompt {
  readonly #template: Template;
  /** Matches the texts of control tokens; null if the model has none. */
  readonly #controls: RegExp | null;
  readonly #variables: Record<string, unknown>;
  readonly #requirements: TemplateRequirements;
  /** Whether the template renders the content of messages only if it is a list of parts. */
  readonly #needsParts: boolean;

  /**
   * @param tags The template's think tags.
   * @throws An error if the template is not valid Jinja.
   */
  constructor(
    private readonly model: PromptModel,
    template: string,
    controlTexts: readonly string[],
    private readonly tags: ThinkTags | null,
  ) {
    this.#template = new Template(template);
    this.#controls = alternation(controlTexts);
    this.#variables = { bos_token: model.tokens.bosString ?? '', eos_token: model.tokens.eosString ?? '' };
    this.#needsParts = !this.#greeting(false).includes(GREETING) && this.#greeting(true).includes(GREETING);
    this.#requirements = templateRequirements((messages, tools) => this.#fill({ messages, ...(tools.length === 0 ? {} : { tools }) }));
  }

  /** Whether the template can render a conversation of one user message. */
  rendersGreeting(): boolean {
    return this.#greeting(this.#needsParts) !== '';
  }

  /** The rendered greeting; '' if the template rejects it. */
  #greeting(asParts: boolean): string {
    try {
      return this.#renderTemplate({ messages: withContent([{ role: 'user', content: GREETING }], asParts) });
    } catch {
      return '';
    }
  }

  /**
   * Tokens of a prompt. `images`: its decoded images, in order.
   *
   * Throws {@link PromptTooLong} from `limit` tokens on, {@link TemplateError} and {@link InfillUnsupported}.
   */
  tokenize(input: PromptInput, limit: number, { images }: PromptImages = NO_IMAGES): PromptTokens {
    const prompt = new PromptBuilder(this.model, images);
    if (input.type === 'text') {
      this.#rejectFarTooLong(input.text + (input.suffix ?? ''), limit);
      if (input.suffix === undefined) prompt.text(input.text, false);
      else this.#infill(prompt, input.text, input.suffix);
      return { ...prompt.complete(limit), startsInsideThinking: false };
    }
    const mask = new ControlTextMask(this.#controls);
    const rendered = this.#render(input, mask);
    this.#rejectFarTooLong(rendered, limit);
    for (const part of mask.split(rendered)) {
      if ('image' in part) prompt.image(part.image);
      else prompt.text(part.text, part.fromTemplate);
    }
    return { ...prompt.complete(limit), startsInsideThinking: this.#opensThinking(rendered) };
  }

  /** Appends prefix and suffix in llama.cpp's default order. */
  #infill(prompt: PromptBuilder, before: string, after: string): void {
    const { prefix = null, suffix = null, middle = null } = this.model.tokens.infill ?? {};
    if (prefix === null || suffix === null || middle === null) throw new InfillUnsupported();
    prompt.token(prefix);
    prompt.text(before, false);
    prompt.token(suffix);
    prompt.text(after, false);
    prompt.token(middle);
  }

  #opensThinking(rendered: string): boolean {
    return this.tags !== null && rendered.trimEnd().endsWith(this.tags.open);
  }

  /** Rejects megabytes of text after tokenising only a sample, because tokenising blocks all streams of this process. */
  #rejectFarTooLong(rendered: string, limit: number): void {
    const sample = SAMPLE_CHARACTERS * limit;
    if (rendered.length <= 2 * sample) return;
    const tokens = this.model.tokenize(rendered.slice(0, sample), false).length;
    if (tokens >= limit) throw new PromptTooLong(Math.ceil((tokens / sample) * rendered.length));
  }

  #render(input: ChatInput, mask: ControlTextMask): string {
    const all = withImagePlaceholders(input.messages, mask);
    const last = input.continuesLast ? all.at(-1) : undefined;
    const closed = last === undefined ? all : all.slice(0, -1);
    const { messages, tools } = fitConversation({ messages: closed, tools: input.tools }, this.#requirements);
    let rendered: string;
    try {
      rendered = this.#fill({
        messages: messages.map((message) => ({ ...(mask.maskAll(message) as TemplateMessage), role: message.role })),
        ...(tools.length === 0 ? {} : { tools: mask.maskAll(tools) }),
        ...(input.thinking === null ? {} : { enable_thinking: input.thinking }),
      });
    } catch {
      throw new TemplateError();
    }
    if (last !== undefined) return rendered + this.#openTurn(last, rendered, mask);
    return input.skipsThinking && this.#opensThinking(rendered) ? `${rendered}\n${this.tags?.close}\n\n` : rendered;
  }

  #fill({ messages, ...variables }: { readonly messages: readonly TemplateMessage[] } & Record<string, unknown>): string {
    return this.#renderTemplate({ ...variables, messages: withContent(messages, this.#needsParts) });
  }

  #renderTemplate(variables: Record<string, unknown>): string {
    return this.#template.render({ ...this.#variables, add_generation_prompt: true, ...variables });
  }

  /** Text of the assistant turn that the model continues. If the template opened a think section, the section is closed first. */
  #openTurn(last: TemplateMessage, rendered: string, mask: ControlTextMask): string {
    const thought = this.#opensThinking(rendered) ? `${mask.maskText(last.reasoning_content ?? '')}\n${this.tags?.close}\n\n` : '';
    return thought + mask.maskText(last.content);
  }
}

class PromptBuilder {
  readonly #tokens: Token[] = [];
  readonly #media: MediaChunk[] = [];
  readonly #unusedImages: Set<number>;

  constructor(
    private readonly model: PromptModel,
    private readonly images: readonly PreparedImage[],
  ) {
    this.#unusedImages = new Set(images.keys());
  }

  text(text: string, special: boolean): void {
    for (const token of this.model.tokenize(text, special)) this.#tokens.push(token);
  }

  token(token: Token): void {
    this.#tokens.push(token);
  }

  image(index: number): void {
    const image = this.images[index];
    if (image === undefined || !this.#unusedImages.delete(index)) throw new TemplateError();
    for (const chunk of image.chunks) this.#media.push({ ...chunk, start: chunk.start + this.#tokens.length });
    for (const token of image.tokens) this.#tokens.push(token);
  }

  complete(limit: number): Pick<PromptTokens, 'tokens' | 'media'> {
    const tokens = this.#tokens;
    const last = this.#media.at(-1);
    // Sampling needs the logits of a text token after the last image.
    const endsInImage = last !== undefined && last.start + last.tokens === tokens.length;
    if (this.#unusedImages.size > 0 || endsInImage) throw new TemplateError();
    const { bos, shouldPrependBosToken } = this.model.tokens;
    const prepends = shouldPrependBosToken && bos !== null && tokens[0] !== bos;
    if (prepends) tokens.unshift(bos);
    if (tokens.length >= limit) throw new PromptTooLong(tokens.length);
    return { tokens, media: prepends ? this.#media.map((chunk) => ({ ...chunk, start: chunk.start + 1 })) : this.#media };
  }
}

function withImagePlaceholders(messages: readonly PromptMessage[], mask: ControlTextMask): TemplateMessage[] {
  let index = 0;
  return messages.map(({ content, ...message }) => {
    if (typeof content === 'string') return { ...message, content };
    const texts = content.map((part) => (part.type === 'text' ? part.text : mask.imagePlaceholder(index++)));
    return { ...message, content: texts.join('') };
  });
}

function withContent(messages: readonly TemplateMessage[], asParts: boolean): readonly unknown[] {
  return asParts ? messages.map((message) => ({ ...message, content: [{ type: 'text', text: message.content }] })) : messages;
}
