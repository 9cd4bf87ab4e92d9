import { describe, expect, it } from 'vitest';
import { EMPTY_PARAMETERS, parseParameters } from '../../src/pages/playground/chat/parameters.js';
import { chatEvents, SseReader } from '../../src/pages/playground/requests/chat-request.js';
import { problemFromFailure } from '../../src/pages/playground/requests/problems.js';

describe('events of a stream', () => {
  const stream = ': hello\n\ndata: {"a":"ü€😀"}\n\n: keep-alive\n\ndata: 1\ndata: 2\n\nevent: x\n\ndata: [DONE]\n\ndata: cut';

  it('are equal for any chunk boundaries', () => {
    const bytes = new TextEncoder().encode(stream);
    for (let cut = 1; cut <= bytes.length; cut++) {
      const reader = new SseReader();
      const found: string[] = [];
      for (let at = 0; at < bytes.length; at += cut) found.push(...reader.read(bytes.subarray(at, at + cut)));
      expect(found).toEqual(['{"a":"ü€😀"}', '1\n2', '[DONE]']);
    }
  });

  it('carry text, end, usage, signature and error', () => {
    const chunk = (value: object): string => JSON.stringify({ id: 'x', object: 'chat.completion.chunk', ...value });
    expect(chatEvents(chunk({ choices: [{ delta: { role: 'assistant', content: '' } }] }))).toEqual([{ type: 'other' }]);
    expect(chatEvents(chunk({ choices: [{ delta: { content: 'Hi' }, finish_reason: null }], usage: null }))).toEqual([
      { type: 'text', text: 'Hi' },
    ]);
    expect(chatEvents(chunk({ choices: [{ delta: {}, finish_reason: 'length' }] }))).toEqual([{ type: 'finish', reason: 'length' }]);
    expect(chatEvents(chunk({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 4 } }))).toEqual([
      { type: 'usage', usage: { prompt: 3, completion: 4 } },
    ]);
    expect(chatEvents(chunk({ choices: [], se_signature: 's' }))).toEqual([{ type: 'signature' }]);
    expect(chatEvents('{"error":{"message":"The provider left."}}')).toEqual([{ type: 'error', message: 'The provider left.' }]);
    expect(chatEvents('[DONE]')).toEqual([{ type: 'end' }]);
    for (const odd of ['', 'null', '3', '{"choices":3}', '{"choices":[null]}', '{bad'])
      expect(chatEvents(odd)).toEqual([{ type: 'other' }]);
  });
});

describe('parameters', () => {
  it('omits empty fields', () => {
    expect(parseParameters(EMPTY_PARAMETERS)).toEqual({ kind: 'parameters', parameters: {} });
    const typed = { ...EMPTY_PARAMETERS, temperature: '0', topP: '.9', maxTokens: ' 64 ', seed: '0', stop: 'END\n\n###\n' };
    expect(parseParameters(typed)).toEqual({
      kind: 'parameters',
      parameters: { temperature: 0, top_p: 0.9, max_tokens: 64, seed: 0, stop: ['END', '###'] },
    });
  });

  it.each([
    ['temperature', '2.1'],
    ['temperature', 'hot'],
    ['topP', '1.01'],
    ['maxTokens', '0'],
    ['maxTokens', '1.5'],
    ['seed', '-1'],
    ['stop', 'a\nb\nc\nd\ne'],
  ] as const)('refuses %s = %j at its field', (field, text) => {
    expect(parseParameters({ ...EMPTY_PARAMETERS, [field]: text })).toMatchObject({ kind: 'refused', field });
  });
});

describe('problems', () => {
  const of = (status: number, code = '', message = 'The reason.', retryAfter: number | null = null) =>
    problemFromFailure({ status, code, message, retryAfter });

  it('have a remedy', () => {
    expect(of(402)).toMatchObject({ text: 'The reason.', remedy: { kind: 'deposit' } });
    expect(of(402, '', 'The spend limit of this API key is used up.').title).toMatch(/key/);
    expect(of(429, '', '', 7)).toMatchObject({ remedy: { kind: 'retry', after: 7 }, text: expect.stringContaining('7 seconds') });
    expect(of(503, 'no_provider', 'No provider is free.', 5)).toMatchObject({ remedy: { kind: 'retry', after: 5 } });
    expect(of(400, 'context_length_exceeded').remedy).toEqual({ kind: 'change' });
    for (const status of [400, 401, 402, 403, 404, 413, 429, 500, 501, 502, 503, 504]) {
      const { title, text } = of(status);
      expect(title, String(status)).not.toBe('');
      expect(text.length, String(status)).toBeGreaterThan(10);
    }
  });
});
