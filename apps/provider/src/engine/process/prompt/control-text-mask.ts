/**
 * Carries control texts that a client spelled out through a template, as random placeholders that come out as plain text.
 */
import { randomInt } from 'node:crypto';

/** Stand-ins for control texts in one prompt. Private-use characters and digits survive every text filter of Jinja. */
export class HiddenTexts {
  readonly #originals: string[] = [];
  readonly #mark = `\uE0F0${randomInt(2 ** 47)}${randomInt(2 ** 47)}\uE0F1`;

  constructor(private readonly controls: RegExp | null) {}

  /** A copy in which every text of the client's has its control texts replaced, names of members included. */
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

/** A pattern for any of these texts, the longest first; null where there are none. */
export function alternation(texts: readonly string[]): RegExp | null {
  if (texts.length === 0) return null;
  const longestFirst = [...new Set(texts)].sort((a, b) => b.length - a.length);
  return new RegExp(longestFirst.map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|'), 'g');
}
