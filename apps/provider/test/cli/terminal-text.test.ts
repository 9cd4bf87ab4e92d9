/** Terminal texts: commands stay copyable, and control characters are removed. */
import { expect, test } from 'vitest';
import { clean, wrapped } from '../../src/cli/output/terminal.js';

test('quotes and other command syntax stay unchanged', () => {
  const command = `Run: export PATH="$HOME/.local/bin:$PATH" && echo '<a>' \`b\` \\`;
  expect(clean(command)).toBe(command);
});

test('control and formatting characters go', () => {
  expect(clean('a\u001b[31mb\u202ec\nd\u2028e')).toBe('a [31mb c d e');
  expect(clean('\u0007')).toBe('?');
  expect(clean(`${'x'.repeat(2047)}😀`)).toBe('x'.repeat(2047));
});

test('lines have at most 80 columns, and begin below their first', () => {
  const lines = wrapped('Next  ', 'word '.repeat(40));
  for (const line of lines) expect(line.length).toBeLessThanOrEqual(80);
  expect(lines[1]).toMatch(/^ {6}word/);
});
