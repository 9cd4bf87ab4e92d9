/** The published vectors, and a second implementation written from docs/e2e-protocol.md, against the package and each other. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { encodeE2eAnswerHead } from '../../src/e2e/answer-json.js';
import { parseE2eRequest } from '../../src/e2e/request-parser.js';
import { SeededRandom } from '../seeded-random.js';
import { answerHead, body, joined, openAll, openAs, proof, recipientsOf, sealAnswer, sealTo, terms } from './samples.js';
import * as second from './second-implementation.js';
import { buildVectors } from './vectors.js';

/** Hexadecimal bytes; for long values, length and hash. */
type Printed = string | { readonly length: number; readonly sha256: string };

interface Vectors {
  readonly padme: readonly { readonly length: number; readonly padded: number }[];
  readonly exchanges: readonly Exchange[];
  readonly log_key: string;
  readonly refused_requests: readonly Refused[];
  readonly refused_answers: readonly Refused[];
}

interface Exchange {
  readonly name: string;
  readonly request: Readonly<
    Record<'context_json' | 'context_sha256' | 'data_key' | 'commitment' | 'head' | 'sealed_request_sha256', string>
  > & {
    readonly body: string | { readonly length: number };
    readonly sealed: Printed;
    readonly recipients: readonly Readonly<
      Record<
        | 'private_key'
        | 'public_key'
        | 'ephemeral_private_key'
        | 'enc'
        | 'shared_secret'
        | 'hpke_key'
        | 'hpke_base_nonce'
        | 'response_secret'
        | 'receipt_key'
        | 'request_commitment',
        string
      >
    >[];
  };
  readonly answer: {
    readonly recipient: number;
    readonly response_nonce: string;
    readonly key: string;
    readonly nonce: string;
    readonly pieces: readonly { readonly padding: string; readonly parts: readonly { kind: string; text?: string; length?: number }[] }[];
    readonly proof: object;
    readonly sealed_response_sha256: string;
    readonly response_commitment: string;
    readonly sealed: Printed;
  };
}

interface Refused {
  readonly name: string;
  readonly recipient: number;
  readonly sealed: string;
  readonly code: string;
}

const published = JSON.parse(readFileSync(join(import.meta.dirname, '../../../../docs/e2e-vectors.json'), 'utf8')) as Vectors;
const [stream] = published.exchanges as [Exchange];

const patternOf = (length: number, modulus: number): Uint8Array => Uint8Array.from({ length }, (_, index) => index % modulus);
const printed = (bytes: Uint8Array): Printed =>
  bytes.length <= 4096 ? second.hex(bytes) : { length: bytes.length, sha256: second.hex(second.digest(bytes)) };

/** The exchange's request, rebuilt by the second implementation. */
function rebuild({ request }: Exchange) {
  const {
    v: _,
    body_bytes: __,
    recipients: named,
    ...rest
  } = JSON.parse(request.context_json) as {
    readonly [member: string]: unknown;
    readonly recipients: readonly { readonly provider_id: string }[];
  };
  const text = typeof request.body === 'string' ? second.text(request.body) : patternOf(request.body.length, 251);
  const recipients = request.recipients.map(({ public_key }, index) => ({
    provider_id: named[index]?.provider_id as string,
    publicKey: second.unhex(public_key),
  }));
  const ephemerals = request.recipients.map(({ ephemeral_private_key }) => second.unhex(ephemeral_private_key));
  const head = JSON.parse(request.head) as { readonly [member: string]: unknown };
  return { text, ...second.sealRequest(rest, recipients, head, text, { dataKey: second.unhex(request.data_key), ephemerals }) };
}

test('the published vectors equal the computed vectors', () => {
  expect(published).toEqual(JSON.parse(JSON.stringify(buildVectors())));
});

describe('the second implementation', () => {
  test('pads as published', () => {
    for (const { length, padded } of published.padme) expect(second.padme(length)).toBe(padded);
  });

  test.each(published.exchanges)('seals and opens the published request: $name', (exchange) => {
    const { request } = exchange;
    const { bytes, text, contexts, encs } = rebuild(exchange);
    expect(printed(bytes)).toEqual(request.sealed);
    expect(second.hex(second.digest(bytes))).toBe(request.sealed_request_sha256);
    for (const [index, recipient] of request.recipients.entries()) {
      const opened = second.openRequest(bytes, index, second.unhex(recipient.private_key));
      expect(Buffer.compare(opened.body, text)).toBe(0);
      expect(second.canonical(opened.head)).toBe(request.head);
      expect(second.hex(opened.contextHash)).toBe(request.context_sha256);
      for (const hpke of [opened.hpke, contexts[index] as second.Context]) {
        expect({
          enc: second.hex(encs[index] as Uint8Array),
          shared_secret: second.hex(hpke.shared),
          hpke_key: second.hex(hpke.key),
          hpke_base_nonce: second.hex(hpke.nonce),
          response_secret: second.hex(hpke.export('inference/e2e/v1 response')),
          receipt_key: second.hex(hpke.export('inference/e2e/v1 receipt')),
          request_commitment: second.commitment(hpke, 'request', text),
        }).toEqual(Object.fromEntries(Object.entries(recipient).filter(([name]) => !/private|public|key_id|wrapped/.test(name))));
      }
    }
  });

  test.each(published.exchanges)('opens, and for streams seals, the published answer: $name', (exchange) => {
    const { request, answer } = exchange;
    const { bytes } = rebuild(exchange);
    const { hpke, enc } = second.openRequest(
      bytes,
      answer.recipient,
      second.unhex(request.recipients[answer.recipient]?.private_key as string),
    );
    const keys = second.answerKeys(hpke, enc, second.unhex(answer.response_nonce));
    expect([second.hex(keys.key), second.hex(keys.nonce)]).toEqual([answer.key, answer.nonce]);
    const kinds: Readonly<Record<string, number>> = { head: second.HEAD, body: second.BODY };
    const plaintexts = answer.pieces.map(({ padding, parts }) => {
      const encoded = parts.map(({ kind, text, length = 0 }) => {
        const content = text === undefined ? patternOf(length, 253) : second.text(text);
        return [kinds[kind] as number, content] as const;
      });
      return second.encodeParts(encoded, padding === 'padme' ? second.padme : second.to512);
    });
    // The plain answer is one piece of two frames.
    const chunks = plaintexts.flatMap((plaintext) =>
      Array.from({ length: Math.ceil(plaintext.length / 262_144) }, (_, index) => plaintext.slice(index * 262_144, (index + 1) * 262_144)),
    );
    const sealed = second.sealAnswer(hpke, enc, second.unhex(answer.response_nonce), chunks, second.canonical(answer.proof));
    expect(printed(sealed)).toEqual(answer.sealed);
    const opened = second.openAnswer(hpke, enc, sealed);
    expect(opened.sealedSha256).toBe(answer.sealed_response_sha256);
    const bodies = opened.parts.filter(([kind]) => kind === second.BODY).map(([, part]) => part);
    expect(second.commitment(hpke, 'response', second.join(...bodies))).toBe(answer.response_commitment);
  });

  test('reads the checkpoint in the head of the published stream, which agrees with the context', () => {
    const head = JSON.parse(stream.answer.pieces[0]?.parts[0]?.text ?? '') as { readonly log_checkpoint: string };
    const { log } = JSON.parse(stream.request.context_json) as { readonly log: unknown };
    expect(second.openCheckpoint(head.log_checkpoint, published.log_key)).toEqual(log);
    expect(() => second.openCheckpoint(head.log_checkpoint.replace('\n7\n', '\n8\n'), published.log_key)).toThrow();
  });

  test.each(published.refused_requests)('refuses the published request: $name', ({ sealed, recipient }) => {
    const privateKey = stream.request.recipients[recipient]?.private_key ?? '01'.repeat(32);
    expect(() => second.openRequest(second.unhex(sealed), recipient, second.unhex(privateKey))).toThrow();
  });

  test.each(published.refused_answers)('refuses the published answer: $name', ({ sealed, recipient, code }) => {
    const { contexts, encs } = rebuild(stream);
    const open = () => second.openAnswer(contexts[recipient] as second.Context, encs[recipient] as Uint8Array, second.unhex(sealed));
    expect(open).toThrow(code === 'truncated' || code === 'open_failed' ? code : /./);
  });
});

describe('this package and the second implementation', () => {
  const random = new SeededRandom(80);
  const recipients = recipientsOf(3);
  const privateKeyOf = (index: number): Uint8Array => new Uint8Array(32).fill(1 + index);

  test('it opens requests of the package and seals answers that the package opens', () => {
    for (const length of [0, 1, 1000, 262_144, 600_000]) {
      const text = patternOf(length, 199);
      const sealed = sealTo(recipients, text);
      for (const [index, candidate] of sealed.candidates.entries()) {
        const opened = second.openRequest(sealed.bytes, index, privateKeyOf(index));
        expect(Buffer.compare(opened.body, text)).toBe(0);
        const head = second.text(second.canonical(answerHead));
        const pieces = [
          second.encodeParts([[second.HEAD, head]], second.to512),
          second.encodeParts([[second.BODY, text.subarray(0, 5000)]], second.to512),
        ];
        const answer = second.sealAnswer(opened.hpke, opened.enc, random.bytes(32), pieces, second.canonical(proof));
        const opener = candidate.answerOpener();
        expect(joined(openAll(opener, [answer]), 'body')).toEqual(text.subarray(0, 5000));
        expect(opener.sealedSha256).toBe(second.openAnswer(opened.hpke, opened.enc, answer).sealedSha256);
        expect(candidate.commitments.image(2, second.digest(body))).toBe(second.commitment(opened.hpke, 'image', body, Uint8Array.of(2)));
      }
    }
  });

  test('it seals requests that the package opens and opens answers of the package', () => {
    const named = recipients.map(({ provider_id, x25519: publicKey }) => ({ provider_id, publicKey }));
    const secrets = { dataKey: random.bytes(32), ephemerals: recipients.map(() => random.bytes(32)) };
    const sealed = second.sealRequest({ ...terms, nonce: 'C'.repeat(43) }, named, {}, body, secrets);
    expect(parseE2eRequest(sealed.bytes).context).toMatchObject(terms);
    for (const index of [0, 1, 2]) {
      const opened = openAs(recipients, sealed.bytes, index);
      expect(opened.body).toEqual(body);
      const answer = sealAnswer(opened.answerSealer(), [body, random.bytes(3000)]);
      const read = second.openAnswer(
        sealed.contexts[index] as second.Context,
        sealed.encs[index] as Uint8Array,
        second.join(...answer.pieces),
      );
      expect(read.sealedSha256).toBe(answer.sealedSha256);
      expect(read.parts.map(([kind]) => kind)).toEqual([1, 2, 2, 4]);
      expect(read.parts[0]?.[1]).toEqual(encodeE2eAnswerHead(answerHead).bytes);
    }
  });
});
