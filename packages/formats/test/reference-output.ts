/**
 * What a client may see of a whole output, written the plain way: with the whole text at hand, by splitting and regular
 * expressions. The streaming filter must agree with it for every way of cutting the text.
 */
import type { OutputFilterOptions } from '../src/output/output-filter.js';

export interface Seen {
  readonly visible: string;
  readonly stopped: boolean;
}

/** Placeholder for a tag. Generated texts do not contain this character. */
const MARK = '\ue000';
const SPACE = ` \\t\\r\\n`;

export function referenceOutput(text: string, options: OutputFilterOptions): Seen {
  const { open, close } = options.thinkTags ?? { open: '<think>', close: '</think>' };
  const inside = options.startsInsideThinking ?? false;
  const marked = markSections(text.replace(/\p{Surrogate}/gu, '\ufffd'), open, close, inside);
  return cutAtStop(withoutFormedTags(dropGaps(marked), [open, close]), options.stop);
}

function markSections(text: string, open: string, close: string, startsInside: boolean): string {
  let depth = startsInside ? 1 : 0;
  let marked = startsInside ? MARK : '';
  const tags = new RegExp(`(${[open, close].map((tag) => tag.replace(/[[\]/|]/g, '\\$&')).join('|')})`);
  for (const part of text.split(tags)) {
    if (part === open) depth++;
    else if (part === close) depth = Math.max(0, depth - 1);
    else if (depth > 0) continue;
    marked += part === open || part === close ? MARK : part;
  }
  return marked;
}

function dropGaps(marked: string): string {
  return marked
    .replace(new RegExp(`^[${SPACE}]{0,16}${MARK}[${SPACE}${MARK}]*`), '')
    .replace(new RegExp(`\\n${MARK}[${SPACE}${MARK}]*$`), '\n')
    .replace(new RegExp(`\\n${MARK}([${SPACE}${MARK}]*)`, 'g'), (_, gap: string) => `\n${gap.split(/[\n\ue000]/).at(-1) ?? ''}`)
    .replaceAll(MARK, '');
}

function withoutFormedTags(visible: string, tags: readonly string[]): string {
  return visible.split('').reduce((shown, unit) => (tags.some((tag) => (shown + unit).endsWith(tag)) ? shown : shown + unit), '');
}

function cutAtStop(visible: string, stop: readonly string[]): Seen {
  const [first] = stop
    .map((sequence) => ({ start: visible.indexOf(sequence), end: visible.indexOf(sequence) + sequence.length }))
    .filter(({ start }) => start !== -1)
    .sort((a, b) => a.end - b.end || a.start - b.start);
  return first === undefined ? { visible, stopped: false } : { visible: visible.slice(0, first.start), stopped: true };
}
