/** Unknown, ignored and unsupported request members: each is either refused or reported. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { CHAT_MEMBERS } from '../src/chat-completions/members.js';
import { COMPLETION_MEMBERS } from '../src/completions/members.js';
import { EMBEDDINGS_MEMBERS } from '../src/embeddings/members.js';
import type { RequestError } from '../src/errors/errors.js';
import type { ParseOptions } from '../src/format.js';
import { formatFor } from '../src/formats.js';
import { IMAGES_MEMBERS } from '../src/images/members.js';
import { COUNT_TOKENS_MEMBERS, MESSAGES_MEMBERS } from '../src/messages/members.js';
import { RESPONSES_MEMBERS } from '../src/responses/members.js';
import { refusalOf } from './refusals.js';

type Endpoint = Parameters<typeof formatFor>[0];

const CHAT = '/v1/chat/completions';
const MESSAGES = '/v1/messages';
const RESPONSES = '/v1/responses';
const messages = [{ role: 'user', content: 'Hello' }];
const schema = { type: 'object', properties: { a: { type: 'integer' } } };
const MIN: Readonly<Record<Endpoint, object>> = {
  '/v1/chat/completions': { messages },
  '/v1/completions': { prompt: 'Once' },
  '/v1/responses': { input: 'Hello' },
  '/v1/messages': { messages, max_tokens: 9 },
  '/v1/messages/count_tokens': { messages },
  '/v1/embeddings': { input: 'Hello' },
  '/v1/images/generations': { prompt: 'a square' },
};
const ENDPOINTS = Object.keys(MIN) as Endpoint[];

function parse(endpoint: Endpoint, members: object, options: ParseOptions = { unknownMembers: 'refuse' }) {
  return formatFor(endpoint).parse(new TextEncoder().encode(JSON.stringify({ model: 'm', ...MIN[endpoint], ...members })), options);
}

function textRequest(endpoint: Endpoint, members: object) {
  const { request } = parse(endpoint, members);
  if (request.task !== 'generate') throw new Error('not a request for text');
  return request;
}

const refusal = (endpoint: Endpoint, members: object, options?: ParseOptions): RequestError =>
  refusalOf(() => parse(endpoint, members, options));

describe('a name that no format has', () => {
  it.each(ENDPOINTS)('is refused in the words of the real API (%s)', (endpoint) => {
    const error = refusal(endpoint, { flux_capacitor: 1 });
    expect(error).toMatchObject({ code: 'unknown_parameter', param: 'flux_capacitor' });
    expect(error.message).toBe(
      endpoint.startsWith(MESSAGES)
        ? 'flux_capacitor: Extra inputs are not permitted.'
        : 'Unrecognized request argument supplied: flux_capacitor.',
    );
  });

  it.each<[Endpoint, string, string, unknown]>([
    [CHAT, 'temprature', 'temperature', 0.5],
    [CHAT, 'temperatur', 'temperature', 0.5],
    [CHAT, 'max_token', 'max_tokens', 5],
    [CHAT, 'maxTokens', 'max_tokens', 5],
    [CHAT, 'topP', 'top_p', 0.5],
    [CHAT, 'respones_format', 'response_format', { type: 'json_object' }],
    [CHAT, 'tool', 'tools', []],
    [CHAT, 'mesages', 'messages', []],
    ['/v1/completions', 'logprob', 'logprobs', 1],
    [RESPONSES, 'max_output_token', 'max_output_tokens', 5],
    [RESPONSES, 'instruction', 'instructions', 'Be brief.'],
    [MESSAGES, 'stop_sequence', 'stop_sequences', ['a']],
    [MESSAGES, 'temprature', 'temperature', 0.5],
    ['/v1/embeddings', 'dimension', 'dimensions', 5],
    ['/v1/images/generations', 'respnse_format', 'response_format', 'url'],
  ])('%s: %s is taken for a misspelt %s', (endpoint, typed, meant, value) => {
    const error = refusal(endpoint, { [typed]: value });
    expect(error).toMatchObject({ code: 'unknown_parameter', param: typed });
    expect(error.message).toContain(`(did you mean \`${meant}\`?)`);
  });

  it.each<[Endpoint, string, string | null, object]>([
    [CHAT, 'stream_options.include_usgae', 'include_usage', { stream: true, stream_options: { include_usgae: true } }],
    [CHAT, 'stream_options.extra', null, { stream: true, stream_options: { extra: true } }],
    [
      CHAT,
      'response_format.json_schema.stric',
      'strict',
      { response_format: { type: 'json_schema', json_schema: { name: 'n', schema, stric: true } } },
    ],
    [CHAT, 'tools[1].function.paramters', 'parameters', { tools: [tool('f'), tool('g', { paramters: schema })] }],
    [CHAT, 'messages[0].tool_call', 'tool_calls', { messages: [{ role: 'assistant', content: 'a', tool_call: [] }] }],
    [RESPONSES, 'text.format.shema', 'schema', { text: { format: { type: 'json_schema', name: 'n', shema: schema } } }],
    [RESPONSES, 'text.formats', 'format', { text: { formats: { type: 'json_object' } } }],
    [MESSAGES, 'output_config.fromat', 'format', { output_config: { fromat: { type: 'json_schema', schema } } }],
    [MESSAGES, 'tools[0].input_shema', 'input_schema', { tools: [{ name: 'f', input_shema: schema }] }],
  ])('%s: %s is refused inside of objects, too', (endpoint, param, meant, members) => {
    const error = refusal(endpoint, members);
    expect(error.param).toBe(param);
    if (meant !== null) expect(error.message).toContain(`did you mean \`${meant}\`?`);
  });

  it('is not repeated where it is no name', () => {
    const error = refusal(CHAT, { 'correct horse battery': 1 });
    expect([error.param, error.message]).toEqual([null, 'The request has a member whose name is not known.']);
  });

  it('is accepted from clients that name betas unless misspelt, and by programs that read the request later', () => {
    expect(parse(MESSAGES, { new_beta: { a: 1 } }, { unknownMembers: 'refuse_misspelt' }).ignored).toEqual(['new_beta']);
    expect(refusal(MESSAGES, { temprature: 1 }, { unknownMembers: 'refuse_misspelt' }).param).toBe('temprature');
    expect(parse(CHAT, { temprature: 1, flux_capacitor: 1 }, {}).ignored).toEqual(['temprature', 'flux_capacitor']);
  });
});

describe('members without effect', () => {
  const pairs = (count: number): object => Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 'v']));

  it.each([CHAT, RESPONSES] as const)('of %s are checked as in the real API', (endpoint) => {
    const accepted = { store: true, metadata: { ...pairs(15), ['k'.repeat(64)]: 'v'.repeat(512) }, service_tier: 'flex' };
    expect(parse(endpoint, accepted).ignored).toContain('store');
    const chatOnly = endpoint === CHAT ? ['metadata'] : [];
    expect(parse(endpoint, accepted).ignored).toEqual(expect.arrayContaining(chatOnly));
    for (const members of [
      { metadata: pairs(17) },
      { metadata: { ['k'.repeat(65)]: 'v' } },
      { metadata: { k: 'v'.repeat(513) } },
      { metadata: { k: 1 } },
    ]) {
      const error = refusal(endpoint, members);
      expect(error.code).toBe('invalid_request');
      expect(error.param).toMatch(/^metadata/);
      expect(error.message).toMatch(
        /metadata must be an object of up to 16 strings of up to 512 characters, with names of up to 64 characters/,
      );
    }
    expect(refusal(endpoint, { metadata: { 'a secret': 1 } }).param).toBe('metadata');
    expect(refusal(endpoint, { store: 'yes' }).param).toBe('store');
    expect(refusal(endpoint, { service_tier: 'gold' }).param).toBe('service_tier');
  });

  it('and limited texts are counted in code points', () => {
    const long = (count: number): string => '😀'.repeat(count);
    expect(parse(CHAT, { metadata: { [long(64)]: long(512) }, stop: long(1024) }).ignored).toEqual(['metadata']);
    expect(refusal(CHAT, { metadata: { [long(65)]: 'v' } }).param).toBe('metadata');
    expect(refusal(CHAT, { metadata: { k: long(513) } }).param).toBe('metadata.k');
    expect(refusal(CHAT, { stop: long(1025) }).param).toBe('stop');
  });

  it('of messages, too', () => {
    for (const service_tier of ['auto', 'standard_only']) expect(parse(MESSAGES, { service_tier }).ignored).toEqual(['service_tier']);
    expect(refusal(MESSAGES, { service_tier: 'default' }).message).toBe('service_tier must be auto or standard_only.');
  });
});

function document(citations: object) {
  return { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'a' }, citations };
}

function tool(name: string, members: object = {}) {
  return { type: 'function', function: { name, ...members } };
}

it('a request full of names that nobody knows is read about as quickly as any other', () => {
  const made = Object.fromEntries(Array.from({ length: 9_000 }, (_, index) => [`completion_${index}`, 1]));
  const { ignored } = parse(CHAT, { messages: [{ ...messages[0], ...made }] });
  expect(ignored).toHaveLength(100);
  expect(parse(MESSAGES, made, { unknownMembers: 'refuse_misspelt' }).ignored).toHaveLength(100);
});

describe('members without effect are named', () => {
  it.each<[Endpoint, object, readonly string[]]>([
    [CHAT, { user: 'u', metadata: { a: 'b' }, store: true, provider: { order: ['a'] } }, ['user', 'metadata', 'store']],
    [CHAT, { store: false, metadata: {}, transforms: [], user: null, verbosity: '' }, []],
    [CHAT, { reasoning_effort: 'high' }, ['reasoning_effort']],
    [CHAT, { reasoning_effort: 'none' }, []],
    [
      CHAT,
      { messages: [{ ...messages[0], name: 'Ann', cache_control: { type: 'ephemeral' } }] },
      ['messages[].cache_control', 'messages[].name'],
    ],
    [CHAT, { chat_template_kwargs: { enable_thinking: false, a: 1 } }, ['chat_template_kwargs.a']],
    [RESPONSES, { store: true, user: 'u', metadata: { a: 'b' }, client_metadata: { a: 'b' } }, ['store', 'client_metadata']],
    [RESPONSES, { truncation: 'auto', include: ['reasoning.encrypted_content'] }, ['include (reasoning.encrypted_content)', 'truncation']],
    [RESPONSES, { reasoning: { effort: 'low', summary: 'auto' } }, ['reasoning.summary', 'reasoning.effort']],
    [
      RESPONSES,
      {
        tools: [
          { type: 'function', name: 'shell', parameters: schema },
          { type: 'namespace', name: 'n', tools: [] },
          { type: 'web_search', external_web_access: false },
        ],
      },
      ['tools[1] (namespace)', 'tools[2] (web_search)'],
    ],
    [
      RESPONSES,
      {
        input: [
          { role: 'user', content: 'a' },
          { type: 'web_search_call', id: 'ws' },
        ],
      },
      ['input[1] (web_search_call)'],
    ],
    [MESSAGES, { context_management: { edits: [1] }, output_config: { effort: 'high' } }, ['context_management', 'output_config.effort']],
    [
      CHAT,
      { messages: [{ role: 'user', content: [{ type: 'text', text: 'a', cache_control: { type: 'ephemeral' } }] }] },
      ['messages[].content[].cache_control'],
    ],
    [
      CHAT,
      { tools: [tool('f')], tool_choice: { type: 'function', function: { name: 'f' }, disable_parallel_tool_use: true } },
      ['tool_choice.disable_parallel_tool_use'],
    ],
    [CHAT, { backend_sampling: false, ttl: 300, thinking_token_budget: 10 }, ['ttl', 'thinking_token_budget']],
    [MESSAGES, { tools: [{ name: 'f', input_schema: schema, input_examples: [{ a: 1 }] }] }, ['tools[].input_examples']],
    [MESSAGES, { messages: [{ role: 'user', content: [document({ enabled: true })] }] }, ['messages[].content[].citations']],
    [
      MESSAGES,
      {
        messages: [
          { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: {} }] },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: [document({ enabled: true })] }] },
        ],
      },
      ['messages[].content[].citations'],
    ],
    [MESSAGES, { messages: [{ role: 'user', content: [document({ enabled: false })] }] }, []],
    [MESSAGES, { tools: [{ type: 'tool_search_tool_bm25_20251119', name: 't' }] }, ['tools[0] (tool_search_tool_bm25_20251119)']],
  ])('%s %o', (endpoint, members, ignored) => {
    expect(parse(endpoint, members).ignored).toEqual(ignored);
  });
});

describe('unsupported features are refused by name', () => {
  it.each<[Endpoint, object]>([
    [CHAT, { guided_grammar: 'root ::= "a"' }],
    [CHAT, { grammar: 'root ::= "a"' }],
    [CHAT, { ebnf: 'root ::= "a"' }],
    [CHAT, { min_tokens: 5 }],
    [CHAT, { typical_p: 0.5 }],
    [CHAT, { stop_token_ids: [1] }],
    [CHAT, { ignore_eos: true }],
    [CHAT, { max_new_tokens: 5 }],
    [CHAT, { stop_sequences: ['a'] }],
    [CHAT, { skip_special_tokens: false }],
    [CHAT, { documents: [{ text: 'a' }] }],
    [CHAT, { previous_response_id: 'resp_1' }],
    ['/v1/completions', { grammar: 'root ::= "a"' }],
    [RESPONSES, { guided_json: schema }],
    [RESPONSES, { response_format: { type: 'json_object' } }],
    [RESPONSES, { max_tokens: 5 }],
    [MESSAGES, { guided_json: schema }],
    [MESSAGES, { response_format: { type: 'json_object' } }],
    [MESSAGES, { seed: 5 }],
    [MESSAGES, { stop: ['a'] }],
    ['/v1/images/generations', { negative_prompt: 'blue' }],
    ['/v1/images/generations', { background: 'transparent' }],
  ])('%s %o', (endpoint, members) => {
    const [param] = Object.keys(members);
    const error = refusal(endpoint, members, {});
    expect(error).toMatchObject({ code: 'unsupported_parameter', param });
    expect(error.message.startsWith(`${param} is not supported.`)).toBe(true);
  });

  it('unless it asks for nothing', () => {
    const neutral = {
      min_tokens: 0,
      typical_p: 1,
      ignore_eos: false,
      stop_token_ids: [],
      skip_special_tokens: true,
      length_penalty: 1,
      grammar: '',
    };
    expect(parse(CHAT, neutral)).toMatchObject({ ignored: [], request: textRequest(CHAT, {}) });
  });

  it("unless the format's own member says the same", () => {
    const both = { max_tokens: 5, max_output_tokens: 5 };
    for (const endpoint of [CHAT, '/v1/completions', RESPONSES, MESSAGES] as const) {
      expect(textRequest(endpoint, both).maxTokens, endpoint).toBe(5);
      const other = endpoint === RESPONSES ? 'max_tokens' : 'max_output_tokens';
      expect(refusal(endpoint, { ...both, [other]: 6 }).param, endpoint).toBe(other);
    }
  });

  it.each<[Endpoint, string]>([
    [CHAT, 'web_search'],
    [CHAT, 'custom'],
    ...['web_search', 'web_search_preview', 'file_search', 'mcp', 'code_interpreter', 'image_generation'].map(
      (type): [Endpoint, string] => [RESPONSES, type],
    ),
    ...['computer_use_preview', 'local_shell', 'custom'].map((type): [Endpoint, string] => [RESPONSES, type]),
    ...['web_search_20250305', 'web_fetch_20260209', 'code_execution_20250825', 'mcp_toolset'].map((type): [Endpoint, string] => [
      MESSAGES,
      type,
    ]),
    ...['computer_20250124', 'browser_toolset_20260801'].map((type): [Endpoint, string] => [MESSAGES, type]),
  ])('%s: a tool of type %s, though it is not forced', (endpoint, type) => {
    const error = refusal(endpoint, { tools: [{ type, name: 'x', server_label: 'x' }] });
    expect(error).toMatchObject({ code: 'unsupported_parameter', param: 'tools[0]' });
    expect(error.message).toContain(`"${type}"`);
  });
});

describe('forms of the answer in the spelling of other servers', () => {
  const form = (members: object) => textRequest(CHAT, members).responseFormat;

  it.each<[string, object]>([
    ['response_format.schema', { response_format: { type: 'json_object', schema } }],
    ['response_format.schema', { response_format: { type: 'json_schema', schema } }],
    ['response_format.value', { response_format: { type: 'json', value: schema } }],
    ['guided_json', { guided_json: schema }],
    ['guided_json', { guided_json: JSON.stringify(schema) }],
    ['structured_outputs.json', { structured_outputs: { json: schema } }],
    ['json_schema', { json_schema: schema }],
    ['format', { format: schema }],
  ])('%s is a strict schema', (field, members) => {
    expect(form(members)).toEqual({ type: 'json_schema', name: 'output', schema, strict: true, field });
    expect(textRequest('/v1/completions', members).responseFormat).toEqual(form(members));
  });

  it.each<[object, object]>([
    [{ guided_choice: ['yes', 'no', 'yes'] }, { type: 'choice', choices: ['yes', 'no'], field: 'guided_choice' }],
    [{ structured_outputs: { choice: ['yes'] } }, { type: 'choice', choices: ['yes'], field: 'structured_outputs.choice' }],
    [{ guided_regex: '[ab]+' }, { type: 'regex', pattern: '[ab]+', field: 'guided_regex' }],
    [{ regex: '[ab]+' }, { type: 'regex', pattern: '[ab]+', field: 'regex' }],
    [{ response_format: { type: 'regex', value: '[ab]+' } }, { type: 'regex', pattern: '[ab]+', field: 'response_format.value' }],
    [{ format: 'json' }, { type: 'json_object' }],
    [{ structured_outputs: { json_object: true } }, { type: 'json_object' }],
  ])('%o', (members, expected) => {
    expect(form(members)).toEqual(expected);
  });

  it.each<[string, object]>([
    ['guided_json', { guided_json: schema, response_format: { type: 'json_object' } }],
    ['guided_json', { guided_json: schema, guided_regex: 'a' }],
    ['guided_json', { guided_json: 'no JSON' }],
    ['guided_choice', { guided_choice: [] }],
    ['structured_outputs.grammar', { structured_outputs: { grammar: 'root ::= "a"' } }],
    ['response_format.value', { response_format: { type: 'regex' } }],
    ['response_format.grammar', { response_format: { type: 'grammar', grammar: 'a' } }],
    ['response_format.json_schema', { response_format: { type: 'json_object', json_schema: { name: 'n', schema } } }],
    ['response_format.json_schema', { response_format: { type: 'text', json_schema: { name: 'n', schema } } }],
    ['response_format.schema', { response_format: { type: 'text', schema } }],
    ['response_format.schema', { response_format: { type: 'regex', pattern: 'a', schema } }],
    ['response_format.pattern', { response_format: { type: 'json_object', pattern: 'a' } }],
    ['response_format.value', { response_format: { type: 'json_object', schema, value: { type: 'array' } } }],
    ['response_format.schema', { response_format: { type: 'json_schema', json_schema: { name: 'n', schema }, schema: { type: 'array' } } }],
    ['tool_choice', { functions: [{ name: 'f' }], tool_choice: 'required' }],
    ['tool_choice', { functions: [{ name: 'f' }], tool_choice: 'none' }],
    ['function_call', { tools: [tool('f')], function_call: 'none' }],
  ])('%s is refused in %o', (param, members) => {
    expect(refusal(CHAT, members).param).toBe(param);
  });

  it('a schema beside a type without one is refused in the Responses format, too', () => {
    for (const type of ['text', 'json_object']) {
      expect(refusal(RESPONSES, { text: { format: { type, schema } } }).param, type).toBe('text.format.schema');
    }
  });

  it('null counts as absent, and the same schema in two places as one', () => {
    expect(form({ response_format: { type: 'text', json_schema: null, schema: null, value: null, pattern: null } })).toEqual({
      type: 'text',
    });
    const named = { type: 'json_schema', json_schema: { name: 'n', schema } };
    expect(form({ response_format: { ...named, schema } })).toEqual(form({ response_format: named }));
    const choice = { type: 'function', function: { name: 'f' }, allowed_tools: null };
    expect(textRequest(CHAT, { tools: [tool('f')], tool_choice: choice }).toolChoice).toEqual({ type: 'named', name: 'f' });
  });

  it('switches of thinking are heard, however they are spelt', () => {
    for (const off of [
      { reasoning_effort: 'none' },
      { reasoning: { enabled: false } },
      { reasoning: { effort: 'none' } },
      { enable_thinking: false },
      { chat_template_kwargs: { enable_thinking: false } },
      { thinking: { type: 'disabled' } },
    ]) {
      expect(textRequest(CHAT, off).thinking, JSON.stringify(off)).toBe(false);
    }
    expect(textRequest(CHAT, { enable_thinking: true }).thinking).toBe(true);
  });

  it('a form of the Messages format under its old name must be the same', () => {
    const format = { type: 'json_schema', schema };
    expect(textRequest(MESSAGES, { output_config: { format }, output_format: format }).responseFormat).toMatchObject({ schema });
    const other = { type: 'json_schema', schema: { type: 'array' } };
    expect(refusal(MESSAGES, { output_config: { format }, output_format: other }).param).toBe('output_format');
  });

  it('repetition is penalised under both names', () => {
    expect(refusal(CHAT, { repetition_penalty: 1, repeat_penalty: 1.2 }).param).toBe('repeat_penalty');
    expect(textRequest(CHAT, { repetition_penalty: 1.2 }).sampling.repetitionPenalty).toBe(1.2);
    expect(textRequest(CHAT, { repeat_penalty: 1.1 }).sampling.repetitionPenalty).toBe(1.1);
    expect(textRequest(CHAT, { repetition_penalty: 1 }).sampling.repetitionPenalty).toBeNull();
    expect(refusal(CHAT, { repetition_penalty: 0 }).param).toBe('repetition_penalty');
  });
});

describe('tools that the Messages format defines and the client runs', () => {
  it.each([
    ['bash_20241022', 'bash', ['command', 'restart']],
    ['bash_20250124', 'bash', ['command', 'restart']],
    ['text_editor_20241022', 'str_replace_editor', ['command', 'path', 'file_text', 'old_str', 'new_str', 'insert_line', 'view_range']],
    ['text_editor_20250124', 'str_replace_editor', ['command', 'path', 'file_text', 'old_str', 'new_str', 'insert_line', 'view_range']],
    ['text_editor_20250429', 'str_replace_based_edit_tool', ['command', 'insert_text', 'path', 'view_range']],
    ['text_editor_20250728', 'str_replace_based_edit_tool', ['command', 'insert_text', 'path', 'view_range']],
    ['memory_20250818', 'memory', ['command', 'path', 'old_path', 'new_path', 'insert_text']],
  ])('%s is offered as %s with its schema', (type, name, properties) => {
    const { tools, toolChoice } = textRequest(MESSAGES, {
      tools: [{ type, name, cache_control: { type: 'ephemeral' } }],
      tool_choice: { type: 'any' },
    });
    expect(toolChoice).toEqual({ type: 'required' });
    expect(tools).toMatchObject([{ name, parameters: { type: 'object' } }]);
    expect(Object.keys(tools[0]?.parameters.properties as object)).toEqual(expect.arrayContaining(properties));
    expect(refusal(MESSAGES, { tools: [{ type, name: 'other' }] }).param).toBe('tools[0].name');
  });
});

it('the model reads title and context of a document', () => {
  const { prompt } = textRequest(MESSAGES, {
    messages: [{ role: 'user', content: [{ ...document({}), title: 'Sky', context: 'From a letter.' }] }],
  });
  expect(prompt).toMatchObject({ messages: [{ role: 'user', content: 'Sky\nFrom a letter.\na' }] });
});

it('every ignored member is listed in the documentation', () => {
  const text = readFileSync(new URL('../../../docs/clients.md', import.meta.url), 'utf8');
  for (const table of [
    CHAT_MEMBERS,
    COMPLETION_MEMBERS,
    RESPONSES_MEMBERS,
    MESSAGES_MEMBERS,
    COUNT_TOKENS_MEMBERS,
    EMBEDDINGS_MEMBERS,
    IMAGES_MEMBERS,
  ]) {
    expect([...table.ignored].filter((name) => !text.includes(`\`${name}\``))).toEqual([]);
  }
});

it.each<[Endpoint, object, string, RegExp]>([
  [
    CHAT,
    { logit_bias: { hello: 1 } },
    'logit_bias.hello',
    /^logit_bias\.hello is not valid: logit_bias must be an object of up to 1024 token numbers/,
  ],
  [
    CHAT,
    { provider: { only: [5] } },
    'provider.only[0]',
    /^provider\.only\[0\] is not valid: provider\.only must be an array of up to 32 provider ids/,
  ],
  [CHAT, { messages: [{ role: 'x', content: '' }] }, 'messages[0].role', /^messages\[0\]\.role must be one of system/],
  ['/v1/embeddings', { input: [] }, 'input', /^input must be a text that is not empty, an array of tokens, or an array/],
])('a fault in %s %j names the value that the message describes', (endpoint, members, param, message) => {
  const error = refusal(endpoint, members);
  expect([error.param, error.message]).toEqual([param, expect.stringMatching(message)]);
});
