/** Syntax check of the Swift sources on any platform. The full check is scripts/ci/check-swift.sh. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import Parser from 'tree-sitter';
import Swift from 'tree-sitter-swift';
import { describe, expect, it } from 'vitest';

const native = fileURLToPath(new URL('../native/', import.meta.url));
const files = ['Sources', 'checks', 'stand-ins'].flatMap((folder) =>
  readdirSync(native + folder)
    .filter((name) => name.endsWith('.swift'))
    .map((name) => `${folder}/${name}`),
);
const source = (file: string) => readFileSync(native + file, 'utf8');

describe('Swift sources', () => {
  const parser = new Parser();
  parser.setLanguage(Swift as unknown as Parser.Language);

  it.each(files)('%s parses', (file) => {
    // Read in pieces, because the parser refuses strings over 32 KiB.
    const text = source(file);
    const tree = parser.parse((index) => text.slice(index, index + 4_096));
    expect(problems(tree.rootNode)).toEqual([]);
  });

  it('reports errors', () => {
    expect(problems(parser.parse('func f( { let x = }').rootNode)).not.toEqual([]);
  });
});

function problems(node: Parser.SyntaxNode): string[] {
  if (node.isError || node.isMissing) return [`${node.startPosition.row + 1}:${node.startPosition.column + 1} ${node.type}`];
  return node.hasError ? node.children.flatMap(problems) : [];
}
