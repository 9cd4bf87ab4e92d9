/** Texts in columns of a terminal: how wide they are, cut where they are too long, and put beside each other. Pure. */
import stringWidth from 'string-width';

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

export function widthOf(text: string): number {
  return stringWidth(text);
}

/** The text in at most so many columns; what is too long loses its middle, as beginnings and ends of names tell them apart. */
export function fit(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text;
  if (columns <= 1) return columns === 1 ? '…' : '';
  const parts = [...graphemes.segment(text)].map(({ segment }) => segment);
  const head = taken(parts, Math.ceil((columns - 1) / 2));
  const tail = taken([...parts].reverse(), columns - 1 - widthOf(head));
  return `${head}…${[...graphemes.segment(tail)]
    .map(({ segment }) => segment)
    .reverse()
    .join('')}`;
}

/** The text in exactly so many columns, filled up on its right. */
export function left(text: string, columns: number): string {
  const cut = fit(text, columns);
  return cut + ' '.repeat(columns - widthOf(cut));
}

/** The same, filled up on its left. */
export function right(text: string, columns: number): string {
  const cut = fit(text, columns);
  return ' '.repeat(columns - widthOf(cut)) + cut;
}

function taken(parts: readonly string[], columns: number): string {
  let text = '';
  for (const part of parts) {
    if (widthOf(text + part) > columns) break;
    text += part;
  }
  return text;
}
