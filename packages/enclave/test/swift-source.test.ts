/**
 * What can be checked of the Swift helper on any machine: that its sources parse, and that the lists it keeps by hand are
 * those of the contract. The full check is scripts/check-swift.sh.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { EndpointSchema, FinishReasonSchema, MAX_KEY_LIFETIME_MS, OverridesSchema, UsageSchema } from '@inference/protocol';
import Parser from 'tree-sitter';
import Swift from 'tree-sitter-swift';
import { describe, expect, it } from 'vitest';
import { CONTRACT_VERSION, MAX_LINE_BYTES, ParameterSchemas, ReceiptDraftSchema } from '../src/contract/requests.js';

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
    // The parser takes its input in pieces; whole files over 32 KiB are refused otherwise.
    const text = source(file);
    const tree = parser.parse((index) => text.slice(index, index + 4_096));
    expect(problems(tree.rootNode)).toEqual([]);
  });

  it('finds what is wrong', () => {
    expect(problems(parser.parse('func f( { let x = }').rootNode)).not.toEqual([]);
  });
});

describe('the lists of the Swift helper', () => {
  const requests = source('Sources/Requests.swift');
  /** Texts between the brackets that follow these words. */
  const listAfter = (words: string) => {
    const found = requests.split(words)[1]?.match(/^[^[]*\[([^\]]*)\]/)?.[1] ?? '';
    return [...found.matchAll(/"([^"]*)"/g)].map((match) => match[1]).sort();
  };
  const literals = (schema: { anyOf: readonly { const: string }[] }) => schema.anyOf.map((choice) => choice.const).sort();

  it('has the endpoints', () => {
    expect(listAfter('private let endpoints')).toEqual(literals(EndpointSchema));
  });

  it('has the members of a receipt, its usage and its overrides', () => {
    expect(listAfter('let known: Set<String> =')).toEqual(Object.keys(ReceiptDraftSchema.properties).sort());
    expect(listAfter('of: "receipt.usage", allowed:')).toEqual(Object.keys(UsageSchema.properties).sort());
    expect(listAfter('of: "receipt.overrides", allowed:')).toEqual(Object.keys(OverridesSchema.properties).sort());
  });

  it('has the finish reasons', () => {
    expect(listAfter('"finish_reason", oneOf:')).toEqual(literals(FinishReasonSchema));
  });

  it('has the operations', () => {
    const operations = [...requests.matchAll(/^ {8}case "([a-z_]+)":$/gm)].map((match) => match[1]);
    expect(operations.sort()).toEqual(Object.keys(ParameterSchemas).sort());
  });

  it('has the limits', () => {
    expect(requests).toContain(`let contractVersion: Int64 = ${CONTRACT_VERSION}\n`);
    expect(requests).toContain(`let longestLine = ${MAX_LINE_BYTES / 1024} * 1024\n`);
    expect(requests).toContain(`let longestKeyLife: Int64 = ${MAX_KEY_LIFETIME_MS / 60_000} * 60_000\n`);
  });
});

function problems(node: Parser.SyntaxNode): string[] {
  if (node.isError || node.isMissing) return [`${node.startPosition.row + 1}:${node.startPosition.column + 1} ${node.type}`];
  return node.hasError ? node.children.flatMap(problems) : [];
}
