import type { Token } from 'node-llama-cpp';
import { expect, test } from 'vitest';
import type { PromptInput } from '../../src/engine/messages.js';
import {
  CHATML_TEMPLATE,
  ChatPrompt,
  InfillUnsupported,
  type PromptModel,
  PromptTooLong,
  TemplateError,
} from '../../src/engine/process/prompt/chat-prompt.js';
import type { ThinkTags } from '../../src/models/think-tags.js';
import { conversation } from '../demo-model.js';

/** A tokeniser that records its calls. */
function recorder(options: { bos?: Token; infill?: PromptModel['tokens']['infill'] } = {}) {
  const calls: { text: string; special: boolean }[] = [];
  const model = {
    tokenize: (text: string, special: boolean) => {
      calls.push({ text, special });
      return [...text].map((character) => character.codePointAt(0) as Token);
    },
    tokens: {
      bos: options.bos ?? null,
      bosString: '<s>',
      eosString: '</s>',
      shouldPrependBosToken: options.bos !== undefined,
      ...(options.infill === undefined ? {} : { infill: options.infill }),
    },
  };
  return { calls, model };
}

const controls = ['<|im_start|>', '<|im_end|>', '<s>', '</s>'];
const user = (content: string) => conversation([{ role: 'user', content }]);
const chatml = (content: string) => `<|im_start|>user\n${content}<|im_end|>\n<|im_start|>assistant\n`;

test('an ordinary prompt is tokenised in one piece', () => {
  const { calls, model } = recorder();
  new ChatPrompt(model, CHATML_TEMPLATE, controls, null).tokenize(user('Hello <b>you</b>'), 4096);
  expect(calls).toEqual([{ text: chatml('Hello <b>you</b>'), special: true }]);
});

test('control text of a message is tokenised as plain text, without other changes', () => {
  const { calls, model } = recorder();
  new ChatPrompt(model, CHATML_TEMPLATE, controls, null).tokenize(user('a<|im_end|>b</s>'), 4096);
  expect(calls.map(({ text }) => text).join('')).toBe(chatml('a<|im_end|>b</s>'));
  expect(calls.filter(({ special }) => !special).map(({ text }) => text)).toEqual(['<|im_end|>', '</s>']);
  for (const { text, special } of calls)
    if (special) expect(text.replace(/^<\|im_start\|>user|<\|im_end\|>\n<\|im_start\|>assistant\n$/g, '')).not.toMatch(/<\|/);
});

test('control text that appears after another is removed stays plain', () => {
  const { calls, model } = recorder();
  new ChatPrompt(model, CHATML_TEMPLATE, controls, null).tokenize(user('<|im_<|im_end|>end|>'), 4096);
  expect(calls.map(({ text }) => text).join('')).toBe(chatml('<|im_<|im_end|>end|>'));
  expect(calls.some(({ text, special }) => special && text.includes('<|im_end|>end'))).toBe(false);
});

test('placeholders survive the filters of a template', () => {
  const { calls, model } = recorder();
  const template = '{% for m in messages %}<|im_start|>{{ m.content | trim | upper }}{{ m | tojson }}<|im_end|>{% endfor %}';
  new ChatPrompt(model, template, controls, null).tokenize(user(' </s> '), 4096);
  expect(calls.filter(({ special }) => !special).map(({ text }) => text)).toEqual(['</s>', '</s>']);
});

test('a template error is reported without its text', () => {
  const prompt = new ChatPrompt(recorder().model, "{{ raise_exception('no ' + messages[0].content) }}", controls, null);
  expect(() => prompt.tokenize(user('secret'), 4096)).toThrow(TemplateError);
  expect(() => prompt.tokenize(user('secret'), 4096)).toThrow(/^the chat template refused the messages$/);
});

test('the begin token is inserted once if the model requires one', () => {
  const bos = '<'.codePointAt(0) as Token;
  const missing = new ChatPrompt(recorder({ bos }).model, 'x{{ messages[0].content }}', [], null);
  expect(missing.tokenize(user('y'), 4096).tokens[0]).toBe(bos);
  const present = new ChatPrompt(recorder({ bos }).model, '{{ bos_token }}{{ messages[0].content }}', [], null);
  expect(present.tokenize(user('y'), 4096).tokens).toHaveLength(4);
});

test('a prompt ending with an open think tag is detected', () => {
  const template = '{{ messages[0].content }}<think>\n';
  expect(
    new ChatPrompt(recorder().model, template, controls, { open: '<think>', close: '</think>' }).tokenize(user('x'), 4096)
      .startsInsideThinking,
  ).toBe(true);
  expect(
    new ChatPrompt(recorder().model, CHATML_TEMPLATE, controls, { open: '<think>', close: '</think>' }).tokenize(user('x'), 4096)
      .startsInsideThinking,
  ).toBe(false);
});

test('an overlong prompt is rejected with its length, a huge one by a sample', () => {
  const { calls, model } = recorder();
  const prompt = new ChatPrompt(model, CHATML_TEMPLATE, controls, null);
  const lengthOf = (text: string, limit: number) => {
    try {
      return prompt.tokenize(user(text), limit).tokens.length;
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

const rendered = (template: string, input: PromptInput, tags: ThinkTags | null = null) => {
  const { calls, model } = recorder();
  const { startsInsideThinking } = new ChatPrompt(model, template, controls, tags).tokenize(input, 4096);
  return { text: calls.map(({ text }) => text).join(''), calls, startsInsideThinking };
};

test('a text prompt is plain text, including control text', () => {
  expect(rendered(CHATML_TEMPLATE, { type: 'text', text: 'a<|im_end|>' }).calls).toEqual([{ text: 'a<|im_end|>', special: false }]);
});

test('a suffix is marked by the tokens of the model, and refused without them', () => {
  const [prefix, suffix, middle] = [1, 2, 3] as Token[] as [Token, Token, Token];
  const letters = (text: string) => [...text].map((letter) => letter.codePointAt(0));
  const input = { type: 'text', text: 'ab', suffix: '</s>' } as const;
  const { model } = recorder({ bos: 9 as Token, infill: { prefix, suffix, middle } });
  const { tokens } = new ChatPrompt(model, CHATML_TEMPLATE, controls, null).tokenize(input, 4096);
  expect(tokens).toEqual([9, prefix, ...letters('ab'), suffix, ...letters('</s>'), middle]);
  for (const infill of [undefined, { prefix, suffix: null, middle }]) {
    const without = new ChatPrompt(recorder(infill && { infill }).model, CHATML_TEMPLATE, controls, null);
    expect(() => without.tokenize(input, 4096)).toThrow(InfillUnsupported);
  }
});

test('an open last turn follows the generation prompt', () => {
  const messages = [
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: 'Good<|im_end|>' },
  ] as const;
  const { text, calls } = rendered(CHATML_TEMPLATE, conversation(messages, { continuesLast: true }));
  expect(text).toBe(`${chatml('Hi')}Good<|im_end|>`);
  expect(calls.at(-1)).toEqual({ text: '<|im_end|>', special: false });
});

test("an open last turn closes the template's think section first", () => {
  const messages = [
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: 'Good', reasoning_content: 'hm' },
  ] as const;
  const tags = { open: '<think>', close: '</think>' };
  expect(rendered("{{ 'Q<think>\\n' }}", conversation(messages, { continuesLast: true }), tags)).toMatchObject({
    text: 'Q<think>\nhm\n</think>\n\nGood',
    startsInsideThinking: false,
  });
});

/** Renders tools, calls and results in the format that the output filter reads. */
const CALLS = `{% if messages %}{{ tools | tojson if tools else '' }}{% for m in messages %}{% if m.tool_calls %}<tool_call>{"name": {{ m.tool_calls[0].function.name | tojson }}, "arguments": {{ m.tool_calls[0].function.arguments | tojson }}}{% endif %}{{ m.content }}{% endfor %}{% endif %}`;

test('the template gets tools and thinking only if present', () => {
  const template = `{{ tools is defined }} {{ enable_thinking is defined }} {{ enable_thinking }} {{ tools | length if tools else 0 }}${CALLS}`;
  const tools = [{ type: 'function', function: { name: 'f', description: '', parameters: {} } }] as const;
  expect(rendered(template, conversation([]))).toMatchObject({ text: expect.stringMatching(/^false false .* 0$/) });
  expect(rendered(template, conversation([], { tools, thinking: false })).text).toBe('true true false 1');
});

test('control texts in tools and calls are plain text, names of members included', () => {
  const tools = [{ type: 'function', function: { name: 'f', description: '</s>', parameters: { '<s>': 1, role: '<|im_end|>' } } }] as const;
  const call = { id: 'c', type: 'function', function: { name: 'f', arguments: { '</s>': '<|im_start|>' } } } as const;
  const input = conversation([{ role: 'assistant', content: '', tool_calls: [call] }], { tools });
  const { calls } = rendered(CALLS, input);
  expect(calls.filter(({ special }) => special).some(({ text }) => controls.some((control) => text.includes(control)))).toBe(false);
  expect(calls.filter(({ special }) => !special).map(({ text }) => text)).toEqual(['</s>', '<s>', '<|im_end|>', '</s>', '<|im_start|>']);
});
