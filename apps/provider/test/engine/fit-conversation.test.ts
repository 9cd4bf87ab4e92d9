/** Conversations under templates of several families: rejected or dropped parts are expressed in another way. */
import type { Token } from 'node-llama-cpp';
import { describe, expect, test } from 'vitest';
import type { ChatInput, PromptMessage } from '../../src/engine/messages.js';
import { CHATML_TEMPLATE, ChatPrompt } from '../../src/engine/process/prompt/chat-prompt.js';
import { conversation } from '../demo-model.js';

function rendered(template: string, messages: readonly PromptMessage[], changes: Partial<ChatInput> = {}): string {
  let text = '';
  const model = {
    tokenize: (part: string) => {
      text += part;
      return [1 as Token];
    },
    tokens: { bos: null, bosString: '<s>', eosString: '</s>', shouldPrependBosToken: false },
  };
  new ChatPrompt(model, template, ['<|end|>'], null).tokenize(conversation(messages, changes), 1e6);
  return text;
}

const system = (content: string): PromptMessage => ({ role: 'system', content });
const user = (content: string): PromptMessage => ({ role: 'user', content });
const assistant = (content: string): PromptMessage => ({ role: 'assistant', content });
const calling = (content: string, ...cities: string[]): PromptMessage => ({
  role: 'assistant',
  content,
  tool_calls: cities.map((city) => ({ id: `call_of_${city}`, type: 'function', function: { name: 'weather', arguments: { city } } })),
});
const result = (city: string, content: string): PromptMessage => ({ role: 'tool', content, tool_call_id: `call_of_${city}` });
const tools = [{ type: 'function', function: { name: 'weather', description: 'Of a city', parameters: { type: 'object' } } }] as const;

/** Every role by its name, in brackets. */
const PLAIN = '{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}';
/** Like Mistral's: alternating turns, own format of tools and calls, ids of nine characters. */
const ALTERNATING = `{%- if messages[0].role == 'system' %}{% set rest = messages[1:] %}[system:{{ messages[0].content }}]{% else %}{% set rest = messages %}{% endif %}
{%- if tools %}[AVAILABLE_TOOLS]{{ tools | tojson }}{% endif %}
{%- set ns = namespace(index=0) %}
{%- for m in rest %}{% if m.role != 'tool' and not m.tool_calls %}
{%- if (m.role == 'user') != (ns.index % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}{% set ns.index = ns.index + 1 %}{% endif %}{% endfor %}
{%- for m in rest %}{% if m.tool_calls %}[TOOL_CALLS]{% for call in m.tool_calls %}{% if call.id | length != 9 %}{{ raise_exception('ids have nine characters') }}{% endif %}{{ call.function.name }}{% endfor %}
{%- else %}[{{ m.role }}:{{ m.content }}]{% endif %}{% endfor %}`;
/** As Gemma 2's: no system message at all. */
const WITHOUT_SYSTEM = `{%- if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}${PLAIN}`;
/** Like Llama 3's: one call per message, in its own format. */
const ONE_CALL = `{%- if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}{% if m.tool_calls %}{% if m.tool_calls | length != 1 %}{{ raise_exception('one call') }}{% endif %}{"name": "{{ m.tool_calls[0].function.name }}", "parameters": {{ m.tool_calls[0].function.arguments | tojson }}}{% else %}[{{ m.role }}:{{ m.content }}]{% endif %}{% endfor %}`;
/** As Hermes' and Qwen's. */
const HERMES = `{%- if tools %}<tools>{{ tools | tojson }}</tools>{% endif %}{% for m in messages %}[{{ m.role }}:{{ m.content }}{% for call in m.tool_calls or [] %}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}]{% endfor %}`;
/** Like DeepSeek R1's: only the last system message counts. */
const LAST_SYSTEM = `{%- set ns = namespace(system='') %}{% for m in messages %}{% if m.role == 'system' %}{% set ns.system = m.content %}{% endif %}{% endfor %}[system:{{ ns.system }}]{% for m in messages %}{% if m.role != 'system' %}[{{ m.role }}:{{ m.content }}]{% endif %}{% endfor %}`;

describe('supported conversations are unchanged', () => {
  test('system messages anywhere, and turns in any order', () => {
    const messages = [assistant('a'), user('b'), user('c'), system('d'), assistant('e')];
    expect(rendered(PLAIN, messages)).toBe('[assistant:a][user:b][user:c][system:d][assistant:e]');
  });

  test("tools and calls in the output filter's format", () => {
    const messages = [user('a'), calling('', 'Paris', 'Rome'), result('Paris', 'sun'), result('Rome', 'rain')];
    const text = rendered(HERMES, messages, { tools });
    expect(text).toContain('<tools>[{"type": "function"');
    expect(text).toContain('{"name": "weather", "arguments": {"city": "Rome"}}');
    expect(text).toMatch(/\[tool:sun\]\[tool:rain\]$/);
  });
});

describe('unsupported parts are expressed in another way', () => {
  test('a system message without template support', () => {
    expect(rendered(WITHOUT_SYSTEM, [system('a'), user('b'), assistant('c'), user('d')])).toBe('[user:a\n\nb][assistant:c][user:d]');
    expect(rendered(WITHOUT_SYSTEM, [system('a')])).toBe('[user:a]');
  });

  test('system messages of which the template renders only one', () => {
    expect(rendered(LAST_SYSTEM, [system('a'), user('b'), system('c')])).toBe('[system:a\n\nc][user:b]');
  });

  test('neighbours of one role, and a conversation opened by the assistant', () => {
    expect(rendered(ALTERNATING, [system('a'), user('b'), user('c'), assistant('d'), assistant('e'), user('f')])).toBe(
      '[system:a][user:b\n\nc][assistant:d\n\ne][user:f]',
    );
    expect(rendered(ALTERNATING, [assistant('a'), user('b')])).toBe('[user:][assistant:a][user:b]');
  });

  test('an open assistant turn is continued and merged with nothing', () => {
    const messages = [user('a'), assistant('b'), assistant('c')];
    expect(rendered(ALTERNATING, messages, { continuesLast: true })).toBe('[user:a][assistant:b]c');
  });
});

describe.each([
  ['in a form of its own, with ids of its own', ALTERNATING],
  ['one at a time', ONE_CALL],
  ['not at all', CHATML_TEMPLATE],
])('a template that renders calls %s', (_, template) => {
  const messages = [user('Weather?'), calling('I look.', 'Paris', 'Rome'), result('Paris', 'sun'), result('Rome', 'rain'), user('Thanks')];
  const text = rendered(template, messages, { tools });

  test("gets its tools in a system message, in the output filter's format", () => {
    expect(text).toContain(`<tools>\n${JSON.stringify(tools[0])}\n</tools>`);
    expect(text.match(/weather/g)).toHaveLength(3);
  });

  test('renders every call as the model wrote it, and every result', () => {
    const call = (city: string) => `<tool_call>\n{"name": "weather", "arguments": {"city":"${city}"}}\n</tool_call>`;
    expect(text).toContain(`I look.\n${call('Paris')}\n${call('Rome')}`);
    expect(text).toContain('<tool_response>\nsun\n</tool_response>\n<tool_response>\nrain\n</tool_response>');
    expect(text.indexOf('Thanks')).toBeGreaterThan(text.indexOf('rain'));
  });
});

test('a template that renders nothing is detected at load', () => {
  const model = { tokenize: () => [1 as Token], tokens: { bos: null, bosString: null, eosString: null, shouldPrependBosToken: false } };
  expect(new ChatPrompt(model, '{{ unknown() }}', [], null).rendersGreeting()).toBe(false);
  expect(new ChatPrompt(model, PLAIN, [], null).rendersGreeting()).toBe(true);
});
