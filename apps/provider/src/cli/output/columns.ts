/** Text layout in terminal columns: width, truncation, padding. */
import stringWidth from 'string-width';

export function widthOf(text: string): number {
  return stringWidth(text);
}

/** Truncates to `columns` in the middle, because beginnings and ends distinguish names. */
export function fit(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text;
  if (columns <= 1) return columns === 1 ? '…' : '';
  const parts = graphemesOf(text);
  const head = joinFitting(parts, Math.ceil((columns - 1) / 2));
  const tail = joinFitting([...parts].reverse(), columns - 1 - widthOf(head));
  return `${head}…${graphemesOf(tail).reverse().join('')}`;
}

/** Created at first use, because loading the tables of Unicode takes 10 ms. */
let segmenter: Intl.Segmenter | null = null;

function graphemesOf(text: string): string[] {
  segmenter ??= new Intl.Segmenter(undefined, { granularity: 'grapheme' });
  return [...segmenter.segment(text)].map(({ segment }) => segment);
}

/** Pads or truncates to exactly `columns`, left-aligned. */
export function left(text: string, columns: number): string {
  const cut = fit(text, columns);
  return cut + ' '.repeat(columns - widthOf(cut));
}

/** Pads or truncates to exactly `columns`, right-aligned. */
export function right(text: string, columns: number): string {
  const cut = fit(text, columns);
  return ' '.repeat(columns - widthOf(cut)) + cut;
}

function joinFitting(parts: readonly string[], columns: number): string {
  let text = '';
  for (const part of parts) {
    if (widthOf(text + part) > columns) break;
    text += part;
  }
  return text;
}
