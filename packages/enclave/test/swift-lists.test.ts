/** Hand-written lists and limits of the Swift helper equal the contract's schemas. */
import { readFileSync } from 'node:fs';
import {
  E2eFinishReasonSchema,
  EndpointSchema,
  FinishReasonSchema,
  MAX_KEY_LIFETIME_MS,
  OverridesSchema,
  RECEIPT_VERSIONS,
  SamplingSchema,
  UsageSchema,
} from '@inference/protocol';
import { describe, expect, it } from 'vitest';
import { CONTRACT_VERSION, E2eReceiptDraftSchema, MAX_LINE_BYTES, ParameterSchemas, ReceiptDraftSchema } from '../src/contract/requests.js';

describe('the lists of the Swift helper', () => {
  const requests = readFileSync(new URL('../native/Sources/Requests.swift', import.meta.url), 'utf8');
  /** Strings between the brackets that follow these words. */
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

  it('has the members of a sampling, and the versions of receipts', () => {
    expect(listAfter('of: "receipt.sampling",')).toEqual(Object.keys(SamplingSchema.properties).sort());
    expect(requests).toContain(`let receiptVersions: [Int64] = [${RECEIPT_VERSIONS.join(', ')}]\n`);
  });

  it('has the finish reasons', () => {
    expect(listAfter('"finish_reason", oneOf:')).toEqual(literals(FinishReasonSchema));
  });

  it('has the members, versions and finish reasons of an end-to-end receipt', () => {
    expect(listAfter('let e2eMembers: Set<String> =')).toEqual(Object.keys(E2eReceiptDraftSchema.properties).sort());
    expect(requests).toContain('let e2eReceiptVersions: [Int64] = [1]\n');
    expect(listAfter('let e2eFinishReasons =')).toEqual(literals(E2eFinishReasonSchema));
  });

  it('has the operations', () => {
    const operations = [...requests.matchAll(/^ {8}case "([a-z0-9_]+)":$/gm)].map((match) => match[1]);
    expect(operations.sort()).toEqual(Object.keys(ParameterSchemas).sort());
  });

  it('has the limits', () => {
    expect(requests).toContain(`let contractVersion: Int64 = ${CONTRACT_VERSION}\n`);
    expect(requests).toContain(`let maxLineBytes = ${MAX_LINE_BYTES / 1024} * 1024\n`);
    expect(requests).toContain(`let maxKeyLife: Int64 = ${MAX_KEY_LIFETIME_MS / 60_000} * 60_000\n`);
  });
});
