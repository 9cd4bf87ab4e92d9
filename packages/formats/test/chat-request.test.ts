import { utf8 } from '@inference/protocol';
import { describe, expect, it } from 'vitest';
import { RequestError } from '../src/errors/errors.js';
import { formatFor } from '../src/formats.js';
import { Random } from './random.js';
import { refusalOf } from './refusals.js';

const format = formatFor('/v1/chat/completions');
const messages = [{ role: 'user', content: 'Hello' }];
const tool = { type: 'function', function: { name: 'f' } };

function parse(body: unknown) {
  return format.parse(utf8(typeof body === 'string' ? body : JSON.stringify(body)));
}

/** Minimal request, extended by these members. */
function parseWith(members: object) {
  return parse({ model: 'm', messages, ...members }).request;
}

function messagesOf(body: unknown) {
  const { prompt } = parse(body).request;
  if (prompt.type !== 'chat') throw new Error('no conversation');
  return prompt.messages;
}

function chat(members: object) {
  return messagesOf({ model: 'm', messages, ...members });
}

const refusal = (body: unknown): RequestError =>
  refusalOf(() => format.parse(body instanceof Uint8Array ? body : utf8(typeof body === 'string' ? body : JSON.stringify(body))));

describe('a request', () => {
  it('with nothing but model and messages gets the defaults', () => {
    expect(parse({ model: 'm', messages })).toMatchObject({
      request: {
        task: 'generate',
        model: 'm',
        stream: false,
        maxTokens: null,
        prompt: { type: 'chat', messages, continuesLast: false },
        tools: [],
        toolChoice: { type: 'auto' },
        parallelToolCalls: true,
        responseFormat: { type: 'text' },
        sampling: { temperature: 1, topP: null, topK: null, seed: null, frequencyPenalty: null, presencePenalty: null },
        logprobs: null,
        thinking: null,
        stop: [],
      },
      params: { endpoint: '/v1/chat/completions', model: 'm', stream: false, maxTokens: null, providerSerial: null },
    });
  });

  it('with everything keeps everything', () => {
    const body = {
      model: 'org/model:8bit',
      messages: [{ role: 'system', content: 'Be brief.' }, ...messages],
      stream: true,
      stream_options: { include_usage: true, include_obfuscation: false },
      max_tokens: 20,
      max_completion_tokens: 20,
      temperature: 0.5,
      top_p: 0.9,
      seed: -7,
      frequency_penalty: -2,
      presence_penalty: 2,
      stop: ['a', 'b', 'a'],
      provider_serial: 'C02XL0',
    };
    expect(parse(body)).toMatchObject({
      request: {
        model: 'org/model:8bit',
        stream: true,
        maxTokens: 20,
        prompt: { type: 'chat', messages: body.messages, continuesLast: false },
        sampling: { temperature: 0.5, topP: 0.9, topK: null, seed: -7, frequencyPenalty: -2, presencePenalty: 2 },
        stop: ['a', 'b'],
      },
      params: { endpoint: '/v1/chat/completions', model: 'org/model:8bit', stream: true, maxTokens: 20, providerSerial: 'C02XL0' },
    });
  });

  it('takes null for absent', () => {
    const names =
      'stream stream_options max_tokens max_completion_tokens temperature top_p seed frequency_penalty presence_penalty stop provider_serial ' +
      'n tools tool_choice functions function_call response_format logprobs top_logprobs logit_bias modalities audio web_search_options';
    const nulls = Object.fromEntries(names.split(' ').map((name) => [name, null]));
    expect(parseWith(nulls)).toEqual(parseWith({}));
  });

  it.each([
    ['unknown fields', { chat_template_kwargs: { a: [1] }, metadata: { a: 'b' }, user: 'u', store: false, reasoning_effort: 'low' }],
    ['parallel_tool_calls, service_tier, verbosity', { parallel_tool_calls: true, service_tier: 'auto', verbosity: 'low' }],
    ['n 1', { n: 1 }],
    ['empty tools', { tools: [], tool_choice: 'auto' }],
    ['null for absent members of messages', { messages: [{ ...messages[0], tool_calls: null, tool_call_id: null }] }],
    ['no functions', { functions: [], function_call: 'none' }],
    ['text as response_format', { response_format: { type: 'text' } }],
    ['logprobs off', { logprobs: false, top_logprobs: 0, logit_bias: {} }],
    ['text as modality', { modalities: ['text'] }],
    ['an empty list of stop sequences', { stop: [] }],
    ['stream false', { stream: false }],
  ])('tolerates %s', (_case, members) => {
    expect(parseWith(members)).toEqual(parseWith({}));
  });

  it.each([
    ['max_completion_tokens', { max_completion_tokens: 5 }, { maxTokens: 5 }],
    ['one token', { max_tokens: 1 }, { maxTokens: 1 }],
    ['min_p', { min_p: 0.05 }, { sampling: { minP: 0.05 } }],
    ['min_p 0, which is none', { min_p: 0 }, { sampling: { minP: null } }],
    [
      'logit_bias',
      { logit_bias: { 50256: -100, 7: 1.5 } },
      {
        sampling: {
          logitBias: [
            [7, 1.5],
            [50256, -100],
          ],
        },
      },
    ],
    ['one stop sequence', { stop: '\n' }, { stop: ['\n'] }],
    ['a stream without usage', { stream: true, stream_options: {} }, { stream: true }],
  ])('takes %s', (_case, members, expected) => {
    expect(parseWith(members)).toMatchObject(expected);
  });

  it.each([
    ['temperature 0', { temperature: 0 }, { temperature: 0 }],
    ['temperature 2', { temperature: 2 }, { temperature: 2 }],
    ['top_p 0 as greedy', { temperature: 1, top_p: 0 }, { temperature: 0, topP: null }],
    ['top_p 1', { top_p: 1 }, { topP: 1 }],
    ['a seed of 64 bits', { seed: -(2 ** 63) }, { seed: -(2 ** 63) }],
    ['seed 0', { seed: 0 }, { seed: 0 }],
  ])('takes %s for sampling', (_case, members, expected) => {
    expect(parseWith(members).sampling).toMatchObject(expected);
  });

  it('takes content as text parts, and every role', () => {
    const given = [
      { role: 'developer', content: [{ type: 'text', text: 'one', cache_control: { type: 'ephemeral' } }] },
      {
        role: 'user',
        name: 'Ann',
        content: [
          { type: 'text', text: 'two' },
          { type: 'text', text: 'three' },
        ],
      },
      { role: 'assistant', content: null, tool_calls: [] },
      { role: 'assistant' },
      { role: 'assistant', content: null, refusal: 'No.' },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'Well,' },
          { type: 'refusal', refusal: 'no.' },
        ],
      },
      { role: 'assistant', tool_calls: [{ id: 'c', type: 'function', function: { name: 'a name of a model', arguments: '' } }] },
      { role: 'tool', tool_call_id: 'c', content: '4' },
      { role: 'user', content: '' },
    ];
    expect(chat({ messages: given })).toEqual([
      { role: 'system', content: 'one' },
      { role: 'user', content: 'two\nthree' },
      { role: 'assistant', content: '', reasoning: null, toolCalls: [] },
      { role: 'assistant', content: '', reasoning: null, toolCalls: [] },
      { role: 'assistant', content: 'No.', reasoning: null, toolCalls: [] },
      { role: 'assistant', content: 'Well,\nno.', reasoning: null, toolCalls: [] },
      { role: 'assistant', content: '', reasoning: null, toolCalls: [{ id: 'c', name: 'a name of a model', arguments: '' }] },
      { role: 'tool', content: '4', toolCallId: 'c', name: 'a name of a model', isError: false },
      { role: 'user', content: '' },
    ]);
  });

  it('takes text in every script, escaped or not', () => {
    const text = '日本語 😀 \\u0000 \\ud800 \t';
    expect(chat({ messages: [{ role: 'user', content: text }] })[0]?.content).toBe(text);
    expect(messagesOf('{"model":"m","messages":[{"role":"user","content":"\\ud83d\\uDE00"}]}')[0]?.content).toBe('😀');
  });
});

describe('a request is refused, with the field named:', () => {
  const image = [
    { type: 'text', text: 'a' },
    { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
  ];
  it.each<[string, string, object]>([
    ['no model', 'model', { model: undefined }],
    ['an empty model', 'model', { model: '' }],
    ['a model that is no string', 'model', { model: 3 }],
    ['no messages', 'messages', { messages: undefined }],
    ['empty messages', 'messages', { messages: [] }],
    ['messages that are text', 'messages', { messages: 'Hello' }],
    ['a message that is text', 'messages[0]', { messages: ['Hello'] }],
    ['no role', 'messages[1].role', { messages: [...messages, { content: 'a' }] }],
    ['an unknown role', 'messages[0].role', { messages: [{ role: 'critic', content: 'a' }] }],
    ['no content', 'messages[0].content', { messages: [{ role: 'user' }] }],
    ['null content', 'messages[0].content', { messages: [{ role: 'user', content: null }] }],
    ['content that is a number', 'messages[0].content', { messages: [{ role: 'user', content: 5 }] }],
    ['content without parts', 'messages[0].content', { messages: [{ role: 'user', content: [] }] }],
    ['a part that is text', 'messages[0].content[0]', { messages: [{ role: 'user', content: ['a'] }] }],
    ['a part without type', 'messages[0].content[0].type', { messages: [{ role: 'user', content: [{ text: 'a' }] }] }],
    ['a text part without text', 'messages[0].content[0].text', { messages: [{ role: 'user', content: [{ type: 'text' }] }] }],
    [
      'a text part with a number',
      'messages[0].content[1].text',
      {
        messages: [
          {
            role: 'user',
            content: [
              { type: 'text', text: 'a' },
              { type: 'text', text: 1 },
            ],
          },
        ],
      },
    ],
    ['temperature above 2', 'temperature', { temperature: 2.1 }],
    ['temperature below 0', 'temperature', { temperature: -0.1 }],
    ['min_p above 1', 'min_p', { min_p: 1.1 }],
    ['a bias above 100', 'logit_bias[7]', { logit_bias: { 7: 101 } }],
    ['a bias for a word', 'logit_bias.hello', { logit_bias: { hello: 1 } }],
    ['a bias for a text', 'logit_bias', { logit_bias: { 'Tell me more': 1 } }],
    ['a bias for a long word', 'logit_bias', { logit_bias: { ['a'.repeat(41)]: 1 } }],
    ['biases for words', 'logit_bias', { logit_bias: Object.fromEntries([...'abcdefghijkl'].map((word) => [`${word}/~`, 1])) }],
    ['temperature in quotes', 'temperature', { temperature: '1' }],
    ['top_p above 1', 'top_p', { top_p: 1.1 }],
    ['a broken seed', 'seed', { seed: 1.5 }],
    ['max_tokens 0', 'max_tokens', { max_tokens: 0 }],
    ['max_tokens with a fraction', 'max_tokens', { max_tokens: 1.5 }],
    ['max_completion_tokens below 0', 'max_completion_tokens', { max_completion_tokens: -1 }],
    ['two limits that differ', 'max_tokens', { max_tokens: 1, max_completion_tokens: 2 }],
    ['a penalty above 2', 'frequency_penalty', { frequency_penalty: 3 }],
    ['a penalty below -2', 'presence_penalty', { presence_penalty: -3 }],
    ['stream that is no boolean', 'stream', { stream: 'true' }],
    ['stream_options without stream', 'stream_options', { stream_options: { include_usage: true } }],
    ['include_usage that is no boolean', 'stream_options.include_usage', { stream: true, stream_options: { include_usage: 1 } }],
    ['five stop sequences', 'stop', { stop: ['a', 'b', 'c', 'd', 'e'] }],
    ['an empty stop sequence', 'stop', { stop: '' }],
    ['an empty one of several', 'stop[1]', { stop: ['a', ''] }],
    ['a stop sequence too long', 'stop', { stop: 'a'.repeat(1025) }],
    ['a required call without tools', 'tool_choice', { tool_choice: 'required' }],
    ['a named tool that is not there', 'tool_choice', { tools: [tool], tool_choice: { type: 'function', function: { name: 'g' } } }],
    ['an unknown tool choice', 'tool_choice', { tools: [tool], tool_choice: 'any' }],
    ['two tools of one name', 'tools', { tools: [tool, tool] }],
    ['a tool without function', 'tools[0].function', { tools: [{ type: 'function' }] }],
    ['a tool without name', 'tools[0].function.name', { tools: [{ type: 'function', function: {} }] }],
    ...['a.b', 'a b', '', 'ä', 'a'.repeat(65)].map((name): [string, string, object] => [
      `a tool with the name "${name}"`,
      'tools[0].function.name',
      { tools: [{ type: 'function', function: { name } }] },
    ]),
    ['a function with another character in its name', 'functions[0].name', { functions: [{ name: 'a.b' }] }],
    [
      'parameters that are no object',
      'tools[0].function.parameters',
      { tools: [{ type: 'function', function: { name: 'f', parameters: 3 } }] },
    ],
    ['a schema without name', 'response_format.json_schema.name', { response_format: { type: 'json_schema', json_schema: {} } }],
    ['json_schema without schema', 'response_format.json_schema', { response_format: { type: 'json_schema' } }],
    ['top_logprobs alone', 'top_logprobs', { top_logprobs: 2 }],
    ['a top_k that is a text', 'top_k', { top_k: 'x' }],
    ['a top_k below all', 'top_k', { top_k: -2 }],
    ['too many top_logprobs', 'top_logprobs', { logprobs: true, top_logprobs: 21 }],
    ['a result of no call', 'messages[0].tool_call_id', { messages: [{ role: 'tool', content: 'a' }] }],
    [
      'a result of an unknown call',
      'messages[1].tool_call_id',
      {
        messages: [
          { role: 'assistant', tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '' } }] },
          { role: 'tool', tool_call_id: 'd', content: 'a' },
        ],
      },
    ],
    ['a call without id', 'messages[0].tool_calls[0].id', { messages: [{ role: 'assistant', tool_calls: [{ type: 'function' }] }] }],
    [
      'a call of type function without its function',
      'messages[0].tool_calls[1].function',
      {
        messages: [
          {
            role: 'assistant',
            tool_calls: [
              { id: 'c', type: 'function', function: { name: 'f', arguments: '' } },
              { id: 'd', type: 'function' },
            ],
          },
        ],
      },
    ],
    [
      'a call without type and function',
      'messages[0].tool_calls[0].function',
      { messages: [{ role: 'assistant', tool_calls: [{ id: 'c' }] }] },
    ],
    ['a named function without functions', 'function_call', { function_call: { name: 'f' } }],
    ['a named function that is not there', 'function_call', { functions: [{ name: 'f' }], function_call: { name: 'g' } }],
    ['functions and tools', 'functions', { functions: [{ name: 'f' }], tools: [tool] }],
    ['two functions of one name', 'functions', { functions: [{ name: 'f' }, { name: 'f' }] }],
    [
      'a call of a function without arguments',
      'messages[0].function_call.arguments',
      { messages: [{ role: 'assistant', content: null, function_call: { name: 'f' } }] },
    ],
    ['a result of no function', 'messages[0].name', { messages: [{ role: 'function', content: 'a' }] }],
    ['no choices', 'n', { n: 0 }],
    ['too many choices', 'n', { n: 17 }],
    ['half a choice', 'n', { n: 1.5 }],
    ['choices as a text', 'n', { n: '2' }],
    ['a tier that is none', 'service_tier', { service_tier: 'fast' }],
    ['an empty provider_serial', 'provider_serial', { provider_serial: '' }],
  ])('%s', (_case, param, members) => {
    const error = refusal({ model: 'm', messages, ...members });
    expect(error).toMatchObject({ code: 'invalid_request', param });
    expect(error.message.startsWith(`${param} `)).toBe(true);
  });

  it.each<[string, string, object]>([
    ['a response format of another kind', 'response_format', { response_format: { type: 'grammar' } }],
    ['a tool of another kind', 'tool_choice', { tools: [tool], tool_choice: { type: 'custom', custom: { name: 'c' } } }],
    [
      'a call of another kind',
      'messages[0].tool_calls[0]',
      { messages: [{ role: 'assistant', tool_calls: [{ id: 'c', type: 'custom' }] }] },
    ],
    ['a tool of the service', 'tools[1]', { tools: [tool, { type: 'web_search' }] }],
    ['a custom tool', 'tools[0]', { tools: [{ type: 'custom', custom: { name: 'c' } }] }],
    ['spoken output', 'modalities', { modalities: ['text', 'audio'] }],
    ['audio', 'audio', { audio: { voice: 'alloy', format: 'wav' } }],
    ['web search', 'web_search_options', { web_search_options: {} }],
    ['an image', 'messages[0].content[1]', { messages: [{ role: 'user', content: image }] }],
    ['a refusal of the user', 'messages[0].content[0]', { messages: [{ role: 'user', content: [{ type: 'refusal', refusal: 'no' }] }] }],
    ['spoken history', 'messages[0].audio', { messages: [{ role: 'assistant', audio: { id: 'a' } }] }],
  ])('%s, which is not served', (_case, param, members) => {
    expect(refusal({ model: 'm', messages, ...members })).toMatchObject({ code: 'unsupported_parameter', param });
  });

  it('never with anything of its texts', () => {
    const secret = 'correct horse battery staple';
    for (const body of [
      { model: 'm', messages: [{ role: secret, content: secret }] },
      { model: 'm', messages: secret },
      { model: 'm', messages: [{ role: 'user', content: [{ type: secret, text: secret }] }] },
      { model: 'm', messages, temperature: secret, stop: [secret, 3] },
      { model: 'm', messages, [secret]: { [secret]: 'a\0' } },
      { model: 'm', messages, logit_bias: { [secret]: 1 } },
      `{"model": ${secret}`,
    ]) {
      const { message, param } = refusal(body);
      expect(message + param).not.toContain('horse');
      expect(message.length).toBeLessThan(200);
    }
  });
});

describe('a body is refused when it', () => {
  it.each<[string, string | Uint8Array]>([
    ['is empty', ''],
    ['is no JSON', '{"model": "m",}'],
    ['is cut off', '{"model": "m"'],
    ['has something after it', '{} {}'],
    ['begins with a byte order mark', '\ufeff{}'],
    ['is not UTF-8', Uint8Array.of(0x22, 0xff, 0x22)],
    ['has half of a surrogate pair in UTF-8', Uint8Array.of(0x22, 0xed, 0xa0, 0x80, 0x22)],
    ['is nested too deep', `{"a":${'['.repeat(64)}${']'.repeat(64)}}`],
    ['is nested far too deep', '['.repeat(1_000_000) + ']'.repeat(1_000_000)],
    ['has too many values', `{"messages":[${'0,'.repeat(100_000)}0]}`],
    ['has an object of too many members', `{"metadata":{${Array.from({ length: 10_001 }, (_, index) => `"a${index}":1`).join(',')}}}`],
    ['has a name that never ends', '{"a'],
    ['has a name with a broken escape', '{"\\x":1,"\\x":2'],
    ['names a member twice', '{"model":"a","model":"b"}'],
    ['names a member twice, once escaped', '{"model":"a","mod\\u0065l" : "b"}'],
    ['names a member twice further in', '{"a":[{"b":1},{"b":{"c":1,"d":2,"c":3}}]}'],
  ])('%s', (_case, body) => {
    expect(refusal(body)).toMatchObject({ code: 'invalid_json', param: null });
  });

  it.each([
    ['an array', '[]'],
    ['an array with bad text', '[{"model":"\\u0000"}]'],
    ['a text', '"model"'],
    ['null', 'null'],
  ])('is %s', (_case, body) => {
    expect(refusal(body)).toMatchObject({ code: 'invalid_request', param: null, message: 'The request body must be a JSON object.' });
  });

  it.each([
    ['NUL', '\\u0000'],
    ['the first half of a pair', '\\uD83D x'],
    ['the second half of a pair', 'x \\ude00'],
  ])('has a text with %s', (_case, text) => {
    const body = `{"model":"m","messages":[{"role":"user","content":"${text}"}]}`;
    expect(refusal(body)).toMatchObject({ code: 'invalid_request', param: 'messages[0].content' });
    expect(refusal(`{"model":"m","x y":{"z":"${text}"}}`)).toMatchObject({ code: 'invalid_request', param: null });
  });

  it('but not for names or braces within texts, or for the same name in two objects', () => {
    const body =
      '{"model":"m","messages":[{"role":"user","content":"\\"a\\": {[ \\\\"},{"role":"user","content":"\\"role\\":1,"}],"x":{"model":1},"y":"model"}';
    expect(messagesOf(body)).toHaveLength(2);
    expect(parse(`{"model":"m","messages":[{"role":"user","content":"a"}],"x":${'['.repeat(63)}${']'.repeat(63)}}`).request.model).toBe(
      'm',
    );
  });
});

describe('whatever arrives', () => {
  it('is either taken or refused with a RequestError', () => {
    const whole = JSON.stringify({
      model: 'm',
      messages: [{ role: 'user', content: [{ type: 'text', text: 'a"\\é😀' }] }],
      stop: ['a'],
      top_p: 1,
    });
    const junk = ['"', '\\', '{', '}', '[', ']', ',', ':', 'null', '\\u0000', '\\ud800', '1e999', '\n', '0', 'text', '\ufffd'];
    for (let seed = 1; seed <= 5_000; seed++) {
      const random = new Random(seed);
      let body = whole;
      for (let edits = random.below(4) + 1; edits > 0; edits--) {
        const at = random.below(body.length);
        body = body.slice(0, at) + random.text(junk, 2) + body.slice(at + random.below(4));
      }
      try {
        parse(body);
      } catch (error) {
        expect(error, `seed ${seed}`).toBeInstanceOf(RequestError);
      }
    }
  });
});
