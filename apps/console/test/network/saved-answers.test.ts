import { type AttestationFeed, E2E_RESPONSE_CONTENT_TYPE } from '@inference/protocol';
import { describe, expect, it } from 'vitest';
import { answerCases, type KeptAnswer, keptAnswer } from '../../../../packages/verifier/test/answer-cases.js';
import { feedOf, NOW } from '../../../../packages/verifier/test/published-record.js';
import type { Verdict } from '../../src/features/trust/verdicts.js';
import { evaluateSavedAnswer } from '../../src/pages/network/verify/evaluate-saved.js';
import { InputError, readInput } from '../../src/pages/network/verify/read-input.js';

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);

/** A response as `curl -i` prints it: status line, headers, body. */
function curlOutput({ headers, body }: KeptAnswer, lineEnd = '\r\n'): Uint8Array {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return Buffer.concat([utf8(`${['HTTP/1.1 200 OK', ...lines, '', ''].join(lineEnd)}`), body]);
}

interface Saved {
  readonly input?: Uint8Array;
  readonly request?: string;
  readonly isPasted?: boolean;
  readonly feed?: unknown;
}

function evaluate(kept: KeptAnswer, { input = curlOutput(kept), request = kept.request, isPasted = false, feed = kept.feed }: Saved = {}) {
  const read = readInput(input);
  if (read.kind !== 'answer') throw new Error(`read as ${read.kind}`);
  return evaluateSavedAnswer({ answer: read.answer, request, isPasted, feed: feed as AttestationFeed }, NOW);
}

/** The same text as pasted into a text area: line feeds without carriage returns, and extra line ends. */
const pasted = (kept: KeptAnswer): Uint8Array =>
  utf8(`\n${new TextDecoder().decode(curlOutput(kept)).replaceAll('\r\n', '\n').trimEnd()}\n`);

const VERIFIED: ReadonlySet<Verdict> = new Set(['hardware', 'simulated', 'claimed']);

/** Forgeries that this page cannot notice, because a saved response lacks the nonce, the endpoint or the images at URLs. */
const NEEDS_MORE = [
  'plain: the receipt names another nonce',
  'stream: the receipt names another nonce',
  'plain: the receipt names another endpoint',
  'stream: the receipt names another endpoint',
  'images: another image behind a URL',
  'images: one behind a URL is missing',
];

describe('an answer with its headers', () => {
  it('gets the verdict of every other verifier', () => {
    const differing: string[] = [];
    for (const { name, expected, answer } of answerCases()) {
      try {
        const { verdict } = evaluate(answer);
        if (VERIFIED.has(verdict) !== (expected === 'verified')) differing.push(name);
      } catch (error) {
        // Input without a machine id and invalid feeds throw instead.
        if (expected !== 'refused' || !(error instanceof Error)) differing.push(name);
      }
    }
    expect(differing).toEqual(NEEDS_MORE);
  });

  it.each([false, true])('is verified although pasting changed its line ends, stream: %s', (stream) => {
    const kept = keptAnswer({ stream });
    const report = evaluate(kept, { input: pasted(kept), isPasted: true, request: `${kept.request}\n` });
    expect(report.lines.filter(({ ok }) => !ok)).toEqual([]);
    expect(report).toMatchObject({ verdict: 'claimed' });
    expect(report.facts).toContainEqual({ label: 'Model', value: 'pico' });
  });

  it('names the checks that could not run', () => {
    const kept = keptAnswer();
    expect(evaluate(kept, { request: '' }).notChecked).toEqual([
      expect.stringContaining('paste the request body'),
      expect.stringMatching(/endpoint.*chat.completions.*AAAA/),
    ]);
    expect(evaluate(kept).notChecked).toEqual([expect.stringMatching(/endpoint.*chat.completions.*AAAA/)]);
  });

  it('names a simulated machine, and a request that is another', () => {
    const record = { keyProtection: 'software', posture: { secure_enclave: false } } as const;
    const simulated = evaluate(keptAnswer({ record }));
    expect(simulated.verdict).toBe('simulated');
    expect(simulated.facts[0]).toEqual({ label: 'Machine', value: 'Apple M4 Max (simulated)' });
    expect(simulated.notProved[0]).toMatch(/^Anything about hardware/);
    const report = evaluate(keptAnswer(), { request: '{"model":"pico"}' });
    expect(report.verdict).toBe('failed');
    expect(report.lines).toContainEqual({ ok: false, text: 'The receipt names another body.' });
  });

  it('of a machine that is not connected is checked as far as its own key allows', () => {
    const kept = keptAnswer();
    const report = evaluate(kept, { feed: feedOf() });
    expect(report).toMatchObject({ verdict: 'unverified', about: expect.stringContaining('no attestation record confirms the key') });
    expect(report.lines.length).toBeGreaterThan(5);
    expect(report.lines.every(({ ok }) => ok)).toBe(true);
    expect(report.notChecked?.[0]).toMatch(/not connected now/);
    const changed = { ...kept, body: utf8(new TextDecoder().decode(kept.body).replace('assistant', 'Assistant')) };
    expect(evaluate(changed, { feed: feedOf() }).verdict).toBe('failed');
    expect(evaluate(changed, { input: pasted(changed), isPasted: true }).notChecked?.at(-1)).toMatch(/curl -i -o/);
  });
});

describe('input of the page', () => {
  const kind = (text: string): string => readInput(utf8(text)).kind;
  const refusal = (text: string): string => {
    try {
      readInput(utf8(text));
    } catch (error) {
      if (error instanceof InputError) return error.message;
      throw error;
    }
    return 'accepted';
  };
  const answer = (head: string, body = '{}'): string => `HTTP/1.1 200 OK\r\nX-Provider-Id: x\r\n${head}\r\n${body}`;

  it('is recognised by its form', () => {
    expect(kind('{"providers":[]}')).toBe('record');
    expect(kind(' {"provider_id":"x"}')).toBe('record');
    expect(kind('{"object":"inference.receipt"}')).toBe('receipt');
    expect(kind('{"receipt":"x","receipt_signature":"y"}')).toBe('receipt');
    expect(kind(`\n${answer('')}`)).toBe('answer');
  });

  it('may have interim answers before the answer', () => {
    const read = readInput(utf8(`HTTP/1.1 100 Continue\r\n\r\n${answer('Content-Type: text/event-stream\r\n', 'data: x\n\n')}`));
    expect(read).toMatchObject({ kind: 'answer', answer: { isStream: true, body: utf8('data: x\n\n') } });
    expect(kind(`HTTP/1.1 301 Moved\n\nHTTP/2 200\nx-provider-id: x\n\n{}`)).toBe('answer');
  });

  it.each([
    ['', 'The input is empty.'],
    ['{ broken', 'The input is not JSON'],
    ['< HTTP/1.1 200 OK', 'curl -v'],
    ['data: {}\n\n', 'a stream without its headers'],
    [': keep-alive\n\n', 'a stream without its headers'],
    ['{"choices":[]}', 'an answer without its headers'],
    ['{"error":{"message":"no"}}', 'an error message'],
    ['HTTP/1.1 402 Payment Required\r\n\r\n{}', 'status 402'],
    ['HTTP/x', 'no status line'],
    ['HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{}', 'X-Provider-Id is missing'],
    ['HTTP/1.1 200 OK\r\nnonsense\r\n\r\n{}', 'is no header: “nonsense”'],
    [answer('', ''), 'no body'],
    ['HTTP/1.1 200 OK\r\nX-Provider-Id: x', 'no body'],
    [answer(`Content-Type: ${E2E_RESPONSE_CONTENT_TYPE}\r\n`), 'Only the client that sealed the request'],
  ])('%j is refused: %s', (text, expected) => expect(refusal(text)).toContain(expected));
});
