/** `ControlTextMask` passes control text written by clients through a template, as random placeholders that become plain text again. */
import { randomInt } from 'node:crypto';

/** Placeholders for control text of one prompt. Private-use characters and digits survive every text filter of Jinja. */
export class ControlTextMask {
  readonly #originals: string[] = [];
  readonly #mark = `\uE0F0${randomInt(2 ** 47)}${randomInt(2 ** 47)}\uE0F1`;

  constructor(private readonly controls: RegExp | null) {}

  /** Copy of a value with control text replaced in all strings and member names. */
  mask(value: unknown): unknown {
    if (typeof value === 'string') return this.text(value);
    if (Array.isArray(value)) return value.map((item) => this.mask(item));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [this.text(name), this.mask(member)]));
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

  text(text: string): string {
    if (this.controls === null) return text;
    return text.replace(this.controls, (original) => {
      this.#originals.push(original);
      return `${this.#mark}${this.#originals.length - 1}\uE0F2`;
    });
  }
}

/** Pattern for any of the texts, longest first; null for an empty list. */
export function alternation(texts: readonly string[]): RegExp | null {
  if (texts.length === 0) return null;
  const longestFirst = [...new Set(texts)].sort((a, b) => b.length - a.length);
  return new RegExp(longestFirst.map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|'), 'g');
}
