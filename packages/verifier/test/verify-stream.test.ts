import { concatBytes, utf8 } from '@inference/protocol';
import { describe, expect, test } from 'vitest';
import { splitSignedStream } from '../src/signed-stream.js';
import { verifyStream } from '../src/verify-response.js';
import { chunk, generateEnclaveKey, proofFor, requestBody, sha256, signatureEvent } from './signed-answers.js';

const key = generateEnclaveKey();
const DONE = 'data: [DONE]\n\n';
const KEEP_ALIVE = ': keep-alive\n\n';
const events = [chunk(''), chunk('Grüße 😀'), chunk('{"choices":[],"se_signature":"fake"}\n: no comment\n\n'), chunk('end')];
const signed = events.join('');
const event = signatureEvent(proofFor(key, utf8(signed)));
const trusted = { publicKey: key.x963, expected: { requestSha256: sha256(requestBody) } };

const verify = (text: string) => verifyStream(utf8(text), trusted);

test('an unchanged stream passes every check', () => {
  const verdict = verify(signed + event + DONE);
  expect(verdict.checks.filter((each) => each.result === 'failed')).toEqual([]);
  expect(verdict.verified).toBe(true);
  expect(verdict.checks[0]?.name).toBe('signature_event');
  expect(verdict.receipt?.model).toBe('pico');
});

test('a chat stream may carry its signature in a comment, without and with the terminator', () => {
  const { responseHash, signature, receipt, receiptSignature } = proofFor(key, utf8(signed));
  const members = { se_signature: signature, response_hash: responseHash, receipt, receipt_signature: receiptSignature };
  const comment = `: inference-signature ${JSON.stringify(members)}\n\n`;
  expect(verify(signed + comment + DONE).verified).toBe(true);
  expect(verify(signed + comment).verified).toBe(true);
  expect(verify(signed + comment + chunk('more') + DONE).verified).toBe(false);
  expect(verify(signed.replace('end', 'and') + comment + DONE).verified).toBe(false);
});

test('comments between events, wherever they are, change nothing', () => {
  const comments = [KEEP_ALIVE, `:\n\n: data: {"se_signature":"x"}\n\n${KEEP_ALIVE}`];
  for (const comment of comments) {
    const parts = [...events, event, DONE];
    for (let at = 0; at <= parts.length; at++)
      expect(verify([...parts.slice(0, at), comment, ...parts.slice(at)].join('')).verified).toBe(true);
    expect(verify(comment + parts.join(comment) + comment).verified).toBe(true);
  }
});

test('the name of a model may have letters of any script', () => {
  const renamed = (text: string) => text.replaceAll('"model":"pico"', '"model":"Bücherwurm 模型 7B"');
  const named = renamed(signed);
  expect(named).not.toBe(signed);
  expect(verify(named + renamed(signatureEvent(proofFor(key, utf8(named)))) + DONE).verified).toBe(true);
});

test('the terminator may be missing, because the signature is already there', () => {
  expect(verify(signed + event).verified).toBe(true);
});

test('every changed byte of the signed events is found', () => {
  const whole = utf8(signed + event + DONE);
  const length = utf8(signed).length;
  for (let at = 0; at < length; at++) {
    const copy = Uint8Array.from(whole);
    copy[at] = (copy[at] as number) ^ 1;
    const split = splitSignedStream(copy);
    if (split.kind === 'signed') expect(sha256(split.signedBytes)).not.toBe(split.proof.responseHash);
    if (at % 23 === 0) expect(verifyStream(copy, trusted).verified).toBe(false);
  }
});

test('changed bytes of the four proof members is found', () => {
  for (const member of ['se_signature', 'response_hash', 'receipt', 'receipt_signature']) {
    const from = event.indexOf(`"${member}":"`) + member.length + 4;
    const to = event.indexOf('"', from);
    for (let at = from; at < to; at += 17) {
      const changed = event.slice(0, at) + (event[at] === 'A' ? 'B' : event[at] === 'f' ? '0' : 'A') + event.slice(at + 1);
      expect(verify(signed + changed + DONE).verified, `${member} ${at}`).toBe(false);
    }
  }
});

describe('refused', () => {
  const reasonOf = (text: string) => {
    const verdict = verify(text);
    expect(verdict.verified).toBe(false);
    expect(verdict.checks).toHaveLength(1);
    return verdict.checks[0]?.explanation;
  };

  test('a stream without a signature event', () => {
    for (const text of ['', signed, signed + DONE, KEEP_ALIVE, event.slice(0, -30)]) expect(reasonOf(text)).toMatch(/no signature event/);
  });

  test('content after the signature event', () => {
    for (const tail of [
      chunk('more'),
      'x',
      `data: more\n\n${DONE}`,
      DONE + chunk('more'),
      DONE + DONE,
      '\n',
      'data: [DONE]\n',
      'event: x\n\n',
    ]) {
      expect(reasonOf(signed + event + tail)).toMatch(/follows the signature event/);
    }
    // Still inside the signature event: a second data line would be joined to the first.
    expect(reasonOf(`${signed}${event.slice(0, -1)}data: more\n\n${DONE}`)).toMatch(/follows the signature event/);
  });

  test('a carriage return, which ends a line for an SSE reader and could end a comment early', () => {
    expect(reasonOf(`${signed}: comment\rdata: {"choices":[]}\n\n${event}${DONE}`)).toMatch(/carriage return/);
    expect(reasonOf((signed + event + DONE).replaceAll('\n', '\r\n'))).toMatch(/carriage return/);
  });

  test('content or usage in the signature event itself', () => {
    const proof = proofFor(key, utf8(signed));
    for (const extra of [{ choices: [{ delta: { content: 'more' } }] }, { usage: { total_tokens: 9 } }, { choices: null }]) {
      expect(verify(signed + signatureEvent(proof, extra) + DONE).verified).toBe(false);
    }
    expect(verify(signed + signatureEvent(proof, { usage: null }) + DONE).verified).toBe(true);
    const twice = event.replace('"choices":[]', '"choices":[{"delta":{"content":"more"}}],"choices":[]');
    const escaped = event.replace('"choices":[]', '"\\u0063hoices":[{"delta":{"content":"more"}}],"choices":[]');
    for (const text of [twice, escaped]) expect(reasonOf(signed + text + DONE)).toMatch(/no signature event/);
  });

  test('members of other events in the signature event, which a client of another format would show', () => {
    const proof = proofFor(key, utf8(signed));
    const shown = [
      { type: 'response.output_text.delta', delta: 'more' },
      { type: 'content_block_delta', delta: { text: 'more' } },
      { error: { message: 'more' } },
    ];
    for (const extra of shown) expect(reasonOf(signed + signatureEvent(proof, extra) + DONE)).toMatch(/no signature event/);
  });

  test('a comment inside an event, whose blank line would remove the name or first lines of the event', () => {
    const named = 'event: content_block_delta\ndata: {"type":"content_block_delta"}\n\n';
    const { signature, responseHash, receipt, receiptSignature } = proofFor(key, utf8(named));
    const members = { se_signature: signature, response_hash: responseHash, receipt, receipt_signature: receiptSignature };
    const proof = `: inference-signature ${JSON.stringify(members)}\n\n`;
    expect(verify(named + proof + DONE).verified).toBe(true);
    expect(reasonOf(named.replace('\n', `\n${KEEP_ALIVE}`) + proof + DONE)).toMatch(/inside an event/);
    expect(reasonOf(`${signed.slice(0, -1)}: inside\n\n${event}${DONE}`)).toMatch(/inside an event/);
  });

  test('a signature inside an event, of which a client would see neither', () => {
    for (const cut of [signed.slice(0, -1), signed.slice(0, -9)]) {
      expect(reasonOf(cut + signatureEvent(proofFor(key, utf8(cut))) + DONE)).toMatch(/inside an event|no signature event/);
    }
  });

  test('a terminator among the signed events, at which clients stop to read', () => {
    for (const text of [DONE + signed, signed + DONE, events.join(DONE)]) {
      expect(reasonOf(text + signatureEvent(proofFor(key, utf8(text))) + DONE)).toMatch(/stop to read/);
    }
  });

  test('unsigned characters that end a line for some readers', () => {
    for (const end of ['\u2028', '\u0085', '\v', '\f', '\u001c', '\0']) {
      expect(reasonOf(`: x${end}data: more\n\n${signed}${event}${DONE}`), JSON.stringify(end)).toMatch(/printable ASCII/);
      const renamed = signatureEvent(proofFor(key, utf8(signed))).replace('"choices"', `"id":"${end}data: more","choices"`);
      expect(verify(signed + renamed + DONE).verified, JSON.stringify(end)).toBe(false);
    }
  });
});

describe('moved bytes do not pass', () => {
  const failures = (text: string) =>
    verify(text)
      .checks.filter((each) => each.result === 'failed')
      .map((each) => each.name);

  test('unsigned events before the signature', () => {
    for (let at = 0; at <= events.length; at++) {
      const parts = [...events.slice(0, at), chunk('injected'), ...events.slice(at)];
      expect(failures(parts.join('') + event + DONE)).toEqual(['response_hash', 'receipt_response']);
    }
  });

  test('an answer, a time or a model in the signature event other than in the signed events', () => {
    const proof = proofFor(key, utf8(signed));
    for (const extra of [
      { id: 'chatcmpl-2' },
      { object: 'text_completion' },
      { created: 2 },
      { model: 'better' },
      { model: { id: 'pico' } },
    ]) {
      expect(failures(signed + signatureEvent(proof, extra) + DONE)).toEqual(['signature_event']);
    }
    // These members are optional: the specification shows an event without them.
    const without = { id: undefined, object: undefined, created: undefined, model: undefined };
    expect(verify(signed + signatureEvent(proof, without) + DONE).verified).toBe(true);
  });

  test('content behind a comment without its blank line', () => {
    expect(failures(`${signed}: comment\n${chunk('injected')}${event}${DONE}`)).toContain('response_hash');
  });

  test('events dropped, repeated or reordered', () => {
    const [a, b, c, d] = events as [string, string, string, string];
    for (const order of [
      [b, c, d],
      [a, b, c],
      [a, b, b, c, d],
      [b, a, c, d],
    ]) {
      expect(failures(order.join('') + event + DONE)).toContain('response_hash');
    }
  });

  test('a second signature event: only the last one counts, and the first is content', () => {
    expect(failures(signed + event + event + DONE)).toContain('response_hash');
  });

  test('the signature event of another answer', () => {
    const other = signatureEvent(proofFor(key, utf8(chunk('other'))));
    expect(failures(signed + other + DONE)).toEqual(['response_hash', 'receipt_response']);
  });
});

test('bytes that are not UTF-8 are hashed unchanged', () => {
  const bytes = concatBytes(utf8(`${chunk('')}data: {"a":"`), Uint8Array.of(0xff, 0xfe), utf8('"}\n\n'));
  const whole = concatBytes(bytes, utf8(KEEP_ALIVE), utf8(signatureEvent(proofFor(key, bytes))), utf8(DONE));
  expect(verifyStream(whole, trusted).verified).toBe(true);
  const split = splitSignedStream(whole);
  expect(split.kind === 'signed' && split.signedBytes).toEqual(bytes);
});
