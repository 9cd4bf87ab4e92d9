/**
 * Arbitrary and mutated bytes for every parser of the end-to-end profile: only `E2eError` is ever thrown, and pieces do not matter.
 * `E2E_FUZZ_RUNS` sets the inputs per parser.
 */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { concatBytes } from '../../src/bytes.js';
import { nodeE2eCrypto } from '../../src/crypto/e2e-crypto.js';
import { parseE2eAnswerHead, parseE2eProof } from '../../src/e2e/answer-json.js';
import { E2eAnswerMeter } from '../../src/e2e/answer-meter.js';
import { parseE2eContext } from '../../src/e2e/context.js';
import { E2eError } from '../../src/e2e/error.js';
import { E2ePartReader, encodeE2eParts } from '../../src/e2e/parts.js';
import type { E2eCandidate } from '../../src/e2e/request.js';
import { E2eRequestParser, parseE2eRequest, parseE2eRequestHeader } from '../../src/e2e/request-parser.js';
import { body, openAs, recipientsOf, sealAnswer, sealTo } from './samples.js';

const options = { seed: 70, numRuns: Number(process.env.E2E_FUZZ_RUNS ?? 2000) };

const recipients = recipientsOf(2);
const sealed = sealTo(recipients);
const answer = concatBytes(...sealAnswer(openAs(recipients, sealed.bytes, 0).answerSealer(), [body]).pieces);

/** `bytes` with up to four edits: a byte replaced, a range removed or repeated, or foreign bytes inserted. */
function mutationsOf(bytes: Uint8Array): fc.Arbitrary<Uint8Array> {
  const at = fc.nat(bytes.length);
  const edit = fc.oneof(
    fc.record({ at, remove: fc.constant(1), insert: fc.uint8Array({ minLength: 1, maxLength: 1 }) }),
    fc.record({ at, remove: fc.nat(64), insert: fc.uint8Array({ maxLength: 16 }) }),
    fc.record({ at, remove: fc.constant(0), insert: at.map((from) => bytes.slice(from, from + 40)) }),
  );
  return fc.array(edit, { minLength: 1, maxLength: 4 }).map((edits) => {
    let result = bytes;
    for (const { at: position, remove, insert } of edits) {
      result = concatBytes(result.subarray(0, position), insert, result.subarray(position + remove));
    }
    return result;
  });
}

const inputsFrom = (bytes: Uint8Array) => fc.oneof(fc.uint8Array({ maxLength: 200 }), mutationsOf(bytes));

/** Result, or error code. Errors other than E2eError fail the test. */
function outcomeOf(act: () => unknown): unknown {
  try {
    return act();
  } catch (error) {
    if (error instanceof E2eError) return error.code;
    throw error;
  }
}

describe('arbitrary bytes', () => {
  test('as a sealed request: whole and in pieces, the same outcome, and nothing opens that was altered', () => {
    fc.assert(
      fc.property(inputsFrom(sealed.bytes), fc.integer({ min: 1, max: 300 }), (bytes, size) => {
        const whole = outcomeOf(() => parseE2eRequest(bytes));
        const pieces = outcomeOf(() => {
          const parser = new E2eRequestParser();
          for (let at = 0; at < bytes.length; at += size) parser.push(bytes.subarray(at, at + size));
          return parser.end();
        });
        expect(pieces).toEqual(whole);
        if (typeof whole === 'string') return;
        const opened = outcomeOf(() => openAs(recipients, bytes, 0));
        // Changes to the other candidate's wrapped key are not detected, because this candidate does not read it.
        if (typeof opened !== 'string') expect((opened as { body: Uint8Array }).body).toEqual(body);
      }),
      options,
    );
  });

  test('as a header or a context', () => {
    fc.assert(
      fc.property(inputsFrom(sealed.bytes.subarray(0, 700)), inputsFrom(sealed.contextBytes), (header, context) => {
        outcomeOf(() => parseE2eRequestHeader(header));
        const parsed = outcomeOf(() => parseE2eContext(context));
        if (typeof parsed !== 'string') expect(JSON.parse(Buffer.from(context).toString())).toEqual(parsed);
      }),
      options,
    );
  });

  test('as a sealed answer: opener and meter accept nothing altered as complete', () => {
    fc.assert(
      fc.property(inputsFrom(answer), fc.integer({ min: 1, max: 900 }), (bytes, size) => {
        const opener = (sealed.candidates[0] as E2eCandidate).answerOpener();
        const meter = new E2eAnswerMeter(nodeE2eCrypto);
        const opened = outcomeOf(() => {
          for (let at = 0; at < bytes.length; at += size) opener.push(bytes.subarray(at, at + size));
          return opener.end();
        });
        outcomeOf(() => {
          for (let at = 0; at < bytes.length; at += size) meter.push(bytes.subarray(at, at + size));
          return meter.end();
        });
        // Inserted keep-alives, which are not hashed, are the only accepted change.
        if (opened === undefined) expect(opener.sealedSha256).toBe(meter.sealedSha256);
        if (opened === undefined) expect((bytes.length - answer.length) % 4).toBe(0);
      }),
      options,
    );
  });

  test('as parts, heads and proofs', () => {
    const plaintext = encodeE2eParts(
      [
        { kind: 'head', bytes: body },
        { kind: 'body', bytes: body },
      ],
      'stream',
    );
    fc.assert(
      fc.property(inputsFrom(plaintext), inputsFrom(body), (bytes, json) => {
        outcomeOf(() => new E2ePartReader({ head: 100, body: 1000 }).push(bytes));
        outcomeOf(() => parseE2eAnswerHead(json));
        outcomeOf(() => parseE2eProof(json));
      }),
      options,
    );
  });
});
