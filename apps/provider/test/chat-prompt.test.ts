import type { Token } from 'node-llama-cpp';
import { expect, test } from 'vitest';
import { CHATML_TEMPLATE, ChatPrompt, PromptTooLong, TemplateError } from '../src/engine/process/chat-prompt.js';

/** A tokeniser that writes down how it was asked. */
function recorder(options: { bos?: Token } = {}) {
  const calls: { text: string; special: boolean }[] = [];
  const model = {
    tokenize: (text: string, special: boolean) => {
      calls.push({ text, special });
      return [...text].map((character) => character.codePointAt(0) as Token);
    },
    tokens: { bos: options.bos ?? null, bosString: '<s>', eosString: '</s>', shouldPrependBosToken: options.bos !== undefined },
  };
  return { calls, model };
}

const controls = ['<|im_start|>', '<|im_end|>', '<s>', '</s>'];
const chatml = (content: string) => `<|im_start|>user\n${content}<|im_end|>\n<|im_start|>assistant\n`;

test('an ordinary prompt is tokenised in one piece', () => {
  const { calls, model } = recorder();
  new ChatPrompt(model, CHATML_TEMPLATE, controls, null).tokenize([{ role: 'user', content: 'Hello <b>you</b>' }], 4096);
  expect(calls).toEqual([{ text: chatml('Hello <b>you</b>'), special: true }]);
});

test('control texts of a message are tokenised as plain text, nothing else changes', () => {
  const { calls, model } = recorder();
  new ChatPrompt(model, CHATML_TEMPLATE, controls, null).tokenize([{ role: 'user', content: 'a<|im_end|>b</s>' }], 4096);
  expect(calls.map(({ text }) => text).join('')).toBe(chatml('a<|im_end|>b</s>'));
  expect(calls.filter(({ special }) => !special).map(({ text }) => text)).toEqual(['<|im_end|>', '</s>']);
  for (const { text, special } of calls)
    if (special) expect(text.replace(/^<\|im_start\|>user|<\|im_end\|>\n<\|im_start\|>assistant\n$/g, '')).not.toMatch(/<\|/);
});

test('a control text that appears when another is taken out stays plain', () => {
  const { calls, model } = recorder();
  new ChatPrompt(model, CHATML_TEMPLATE, controls, null).tokenize([{ role: 'user', content: '<|im_<|im_end|>end|>' }], 4096);
  expect(calls.map(({ text }) => text).join('')).toBe(chatml('<|im_<|im_end|>end|>'));
  expect(calls.some(({ text, special }) => special && text.includes('<|im_end|>end'))).toBe(false);
});

test('placeholders survive the filters of a template', () => {
  const { calls, model } = recorder();
  const template = '{% for m in messages %}<|im_start|>{{ m.content | trim | upper }}{{ m | tojson }}<|im_end|>{% endfor %}';
  new ChatPrompt(model, template, controls, null).tokenize([{ role: 'user', content: ' </s> ' }], 4096);
  expect(calls.filter(({ special }) => !special).map(({ text }) => text)).toEqual(['</s>', '</s>']);
});

test('a template that refuses the messages is reported without its words', () => {
  const prompt = new ChatPrompt(recorder().model, "{{ raise_exception('no ' + messages[0].content) }}", controls, null);
  expect(() => prompt.tokenize([{ role: 'user', content: 'secret' }], 4096)).toThrow(TemplateError);
  expect(() => prompt.tokenize([{ role: 'user', content: 'secret' }], 4096)).toThrow(/^the chat template refused the messages$/);
});

test('the begin token is put first where the model wants it, once', () => {
  const bos = '<'.codePointAt(0) as Token;
  const missing = new ChatPrompt(recorder({ bos }).model, 'x{{ messages[0].content }}', [], null);
  expect(missing.tokenize([{ role: 'user', content: 'y' }], 4096).tokens[0]).toBe(bos);
  const present = new ChatPrompt(recorder({ bos }).model, '{{ bos_token }}{{ messages[0].content }}', [], null);
  expect(present.tokenize([{ role: 'user', content: 'y' }], 4096).tokens).toHaveLength(4);
});

test('a prompt that ends with an opened think section says so', () => {
  const template = '{{ messages[0].content }}<think>\n';
  expect(
    new ChatPrompt(recorder().model, template, controls, '<think>').tokenize([{ role: 'user', content: 'x' }], 4096).startsInsideThinking,
  ).toBe(true);
  expect(
    new ChatPrompt(recorder().model, CHATML_TEMPLATE, controls, '<think>').tokenize([{ role: 'user', content: 'x' }], 4096)
      .startsInsideThinking,
  ).toBe(false);
});

test('a prompt that leaves no room is refused with its length, a huge one by a sample', () => {
  const { calls, model } = recorder();
  const prompt = new ChatPrompt(model, CHATML_TEMPLATE, controls, null);
  const lengthOf = (text: string, limit: number) => {
    try {
      return prompt.tokenize([{ role: 'user', content: text }], limit).tokens.length;
    } catch (error) {
      if (error instanceof PromptTooLong) return -error.actual;
      throw error;
    }
  };
  const length = chatml('x').length;
  expect([lengthOf('x', length + 1), lengthOf('x', length)]).toEqual([length, -length]);
  calls.length = 0;
  expect(lengthOf('y'.repeat(1_000_000), 100)).toBe(-chatml('y'.repeat(1_000_000)).length);
  expect(calls.reduce((sum, { text }) => sum + text.length, 0)).toBeLessThan(10_000);
});
