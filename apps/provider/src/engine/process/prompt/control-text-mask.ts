/**
 * `ControlTextMask` hides the texts of control tokens, such as `<|im_end|>`, in a client's messages while the chat template is rendered.
 *
 * Random placeholders stand for these texts, and for images. `split` restores the texts as parts to tokenise as plain text, so that
 * clients cannot inject control tokens.
 */
import { randomInt } from 'node:crypto';

/** A text, to be parsed for control tokens only if `fromTemplate`, or the index of an image. */
export type RenderedPart = { readonly text: string; readonly fromTemplate: boolean } | { readonly image: number };

/** Placeholders of one prompt: private-use characters and digits, which Jinja's text filters leave unchanged. */
export class ControlTextMask {
  readonly #originals: string[] = [];
  #hasImages = false;
  readonly #mark = `\uE0F0${randomInt(2 ** 47)}${randomInt(2 ** 47)}\uE0F1`;

  constructor(private readonly controls: RegExp | null) {}

  /** Copy of a value with control text replaced in all strings and member names. */
  maskAll(value: unknown): unknown {
    if (typeof value === 'string') return this.maskText(value);
    if (Array.isArray(value)) return value.map((item) => this.maskAll(item));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [this.maskText(name), this.maskAll(member)]));
  }

  *split(rendered: string): Generator<RenderedPart> {
    if (this.#originals.length === 0 && !this.#hasImages) {
      yield { text: rendered, fromTemplate: true };
      return;
    }
    const parts = rendered.split(new RegExp(`${this.#mark}(i?\\d+)\uE0F2`));
    for (const [index, part] of parts.entries()) {
      const fromTemplate = index % 2 === 0;
      if (!fromTemplate && part.startsWith('i')) yield { image: Number(part.slice(1)) };
      else {
        const text = fromTemplate ? part : (this.#originals[Number(part)] ?? '');
        if (text !== '') yield { text, fromTemplate };
      }
    }
  }

  imagePlaceholder(index: number): string {
    this.#hasImages = true;
    return `${this.#mark}i${index}\uE0F2`;
  }

  maskText(text: string): string {
    if (this.controls === null) return text;
    return text.replace(this.controls, (original) => {
      this.#originals.push(original);
      return `${this.#mark}${this.#originals.length - 1}\uE0F2`;
    });
  }
}

/** Pattern that matches any of the texts, longer ones first; null for an empty list. */
export function alternation(texts: readonly string[]): RegExp | null {
  if (texts.length === 0) return null;
  const longestFirst = [...new Set(texts)].sort((a, b) => b.length - a.length);
  return new RegExp(longestFirst.map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|'), 'g');
}
