/** Terminal output in 80 columns: printing, wrapping and formatting. Removes control characters from text of other machines. */
const WIDTH = 80;
const MAX_LENGTH = 2_048;
/** Control, formatting and unpaired characters, line and paragraph separators. Markup is plain text here. */
const UNSAFE = /[\p{C}\p{Zl}\p{Zp}]+/gu;

/** Writes lines to stdout. Resolves when flushed, because the process may exit right after. */
export function print(lines: readonly string[]): Promise<void> {
  return new Promise((resolve) => {
    process.stdout.write(`${lines.join('\n')}\n`, () => resolve());
  });
}

/** One line without control characters, shortened to `MAX_LENGTH`. Returns `?` if nothing is left. */
export function clean(text: string): string {
  const line = text.replace(UNSAFE, ' ').replace(/\s+/g, ' ').trim();
  // The cut may have halved a character.
  return line.slice(0, MAX_LENGTH).replace(UNSAFE, '') || '?';
}

/** Wraps to 80 columns; the first line begins with `head`, further lines are indented by its width. */
export function wrapped(head: string, text: string): string[] {
  const lines: string[] = [];
  let line = head;
  let isEmpty = true;
  for (const word of clean(text).split(' ')) {
    if (!isEmpty && line.length + 1 + word.length > WIDTH) {
      lines.push(line);
      line = ' '.repeat(head.length);
      isEmpty = true;
    }
    line += isEmpty ? word : ` ${word}`;
    isEmpty = false;
  }
  return [...lines, line];
}

export function spanOf(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86_400)} days`;
}

/** A number with separators: 1234567 as 1,234,567. */
export function count(number: number): string {
  return String(number).replace(/\B(?=(\d{3})+(?!\d))/g, ',');
}

/** Micro-USD as dollars, exact. */
export function dollars(microUsd: number): string {
  const digits = String(Math.abs(microUsd)).padStart(7, '0');
  return `${microUsd < 0 ? '-' : ''}$${digits.slice(0, -6)}.${digits.slice(-6)}`;
}

export function percent(share: number | null): string {
  return share === null ? 'none placed yet' : `${(share * 100).toFixed(share < 0.1 ? 1 : 0)}%`;
}
