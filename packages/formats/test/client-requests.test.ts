/** Request bodies recorded from real clients, and their parsed requests. */
import { describe, expect, it } from 'vitest';
import { RequestError } from '../src/errors/errors.js';
import { formatFor, type TextEndpoint } from '../src/formats.js';
import { Random } from './random.js';
import { refusalOf } from './refusals.js';

const ENDPOINTS: readonly TextEndpoint[] = [
  '/v1/chat/completions',
  '/v1/completions',
  '/v1/responses',
  '/v1/messages',
  '/v1/messages/count_tokens',
];
const cache = { cache_control: { type: 'ephemeral' } };
const schema = { $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object', properties: { a: { type: 'string' } } };

function parse(endpoint: TextEndpoint, body: object) {
  return formatFor(endpoint).parse(new TextEncoder().encode(JSON.stringify(body)));
}

const refusal = (endpoint: TextEndpoint, body: object): RequestError => refusalOf(() => parse(endpoint, body));

const claudeCode = {
  model: 'm',
  messages: [
    { role: 'user', content: [{ type: 'text', text: 'Hello', ...cache }] },
    { role: 'system', content: [{ type: 'text', text: 'A reminder.', ...cache }] },
  ],
  system: [
    { type: 'text', text: 'one', ...cache },
    { type: 'text', text: 'two' },
  ],
  tools: [
    { name: 'Bash', description: 'Runs it.', input_schema: schema, defer_loading: true, eager_input_streaming: true },
    { type: 'tool_search_tool_regex_20251119', name: 'tool_search_tool_regex' },
  ],
  metadata: { user_id: '{"device":"d"}' },
  max_tokens: 32000,
  thinking: { type: 'adaptive', display: 'omitted' },
  context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
  output_config: { effort: 'high' },
  stream: true,
};

const codex = {
  model: 'm',
  stream: true,
  input: [
    { type: 'message', role: 'developer', id: 'i1', content: [{ type: 'input_text', text: 'Rules' }] },
    { type: 'message', role: 'user', id: 'i2', content: [{ type: 'input_text', text: 'Go' }] },
    { type: 'reasoning', id: 'rs_1', summary: [], content: [{ type: 'reasoning_text', text: 'Hm' }], encrypted_content: null },
    {
      type: 'message',
      role: 'assistant',
      id: 'm1',
      status: 'completed',
      content: [{ type: 'output_text', text: 'Well', annotations: [] }],
    },
    { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'shell', arguments: '{"a":1}', status: 'completed' },
    { type: 'function_call', id: 'fc_2', call_id: 'call_2', name: 'shell', arguments: '{}' },
    { type: 'function_call_output', id: 'fo_1', call_id: 'call_1', output: 'done', status: 'completed' },
    { type: 'function_call_output', call_id: 'call_2', output: [{ type: 'input_text', text: 'too' }] },
    { type: 'web_search_call', id: 'ws_1', status: 'completed', action: {} },
  ],
  tools: [
    { type: 'function', name: 'shell', description: 'd', strict: false, parameters: schema },
    { type: 'namespace', name: 'n', description: 'd', tools: [{ type: 'function', name: 'inner' }] },
    { type: 'web_search', external_web_access: false },
    { type: 'custom', name: 'apply_patch', format: { type: 'grammar' } },
  ],
  tool_choice: 'auto',
  parallel_tool_calls: true,
  reasoning: { summary: 'auto' },
  store: false,
  include: ['reasoning.encrypted_content'],
  prompt_cache_key: 'k',
  client_metadata: { a: 'b' },
  text: { format: { type: 'json_schema', name: 'out', strict: true, schema } },
};

describe('a request of', () => {
  it('Claude Code is taken', () => {
    const { request, params } = parse('/v1/messages', claudeCode);
    expect(request).toMatchObject({
      prompt: {
        type: 'chat',
        messages: [
          { role: 'system', content: 'one\ntwo' },
          { role: 'user', content: 'Hello' },
          { role: 'system', content: 'A reminder.' },
        ],
      },
      tools: [{ name: 'Bash', description: 'Runs it.', parameters: schema, strict: false }],
      toolChoice: { type: 'auto' },
      maxTokens: 32000,
      thinking: null,
    });
    expect(params).toEqual({ endpoint: '/v1/messages', model: 'm', stream: true, maxTokens: 32000, providerSerial: null });
  });

  it('Claude Code with the result of a tool is taken', () => {
    const messages = [
      { role: 'user', content: 'Go' },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'Hm', signature: 's' },
          { type: 'redacted_thinking', data: 'x' },
          { type: 'text', text: 'Well' },
          { type: 'tool_use', id: 'toolu_1', name: 'Bash', input: { a: 1 }, ...cache },
          { type: 'tool_use', id: 'toolu_2', name: 'A.name', input: {} },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'toolu_1', content: [{ type: 'text', text: 'no' }], is_error: true, ...cache },
          { type: 'tool_result', tool_use_id: 'toolu_2' },
          { type: 'text', text: 'Again' },
        ],
      },
    ];
    expect(parse('/v1/messages', { ...claudeCode, system: null, messages }).request.prompt).toEqual({
      type: 'chat',
      messages: [
        { role: 'user', content: 'Go' },
        {
          role: 'assistant',
          content: 'Well',
          reasoning: 'Hm',
          toolCalls: [
            { id: 'toolu_1', name: 'Bash', arguments: '{"a":1}' },
            { id: 'toolu_2', name: 'A.name', arguments: '{}' },
          ],
        },
        { role: 'tool', content: 'no', toolCallId: 'toolu_1', name: 'Bash', isError: true },
        { role: 'tool', content: '', toolCallId: 'toolu_2', name: 'A.name', isError: false },
        { role: 'user', content: 'Again' },
      ],
      continuesLast: false,
    });
  });

  it('Claude Code that adds and removes tools on the way is taken', () => {
    const found = { name: 'Monitor', description: 'Watches.', input_schema: schema, defer_loading: true };
    const late = { name: 'mcp__a__b', input_schema: schema };
    const reference = (name: string) => ({ type: 'tool_reference', name });
    const messages = [
      { role: 'user', content: 'Go' },
      {
        role: 'system',
        content: [
          { type: 'text', text: 'More tools.' },
          { type: 'tool_addition', tool: reference('Monitor'), ...cache },
          { type: 'tool_addition', tool: { type: 'tool_definition', definition: late } },
          { type: 'tool_removal', tool: reference('Bash') },
        ],
      },
      { role: 'assistant', content: 'Well' },
      { role: 'user', content: 'And?' },
      { role: 'system', content: [{ type: 'tool_removal', tool: reference('Monitor') }] },
      { role: 'system', content: [{ type: 'tool_addition', tool: reference('Monitor') }], output_config: { effort: 'low' } },
      { role: 'system', content: [{ type: 'tool_addition', tool: { type: 'mcp_tool_reference', server_name: 's', name: 'Bash' } }] },
      { role: 'system', output_config: { effort: 'high' } },
    ];
    const { request } = parse('/v1/messages', { ...claudeCode, system: null, tools: [...claudeCode.tools, found], messages });
    expect(request.prompt).toMatchObject({
      messages: [
        { role: 'user', content: 'Go' },
        { role: 'system', content: 'More tools.' },
        { role: 'assistant', content: 'Well' },
        { role: 'user', content: 'And?' },
      ],
    });
    expect(request.tools.map(({ name }) => name)).toEqual(['mcp__a__b', 'Monitor']);
    const broken = { role: 'system', content: [{ type: 'tool_addition', tool: { type: 'tool_definition', definition: { name: 'x' } } }] };
    expect(refusal('/v1/messages', { ...claudeCode, messages: [...messages, broken] })).toMatchObject({
      param: 'messages[8].content[0].tool.definition.input_schema',
    });
  });

  it.each(['adaptive', 'between_tools', 'enabled'])('a client that wants thoughts is taken (%s)', (type) => {
    const { request, answer } = parse('/v1/messages', { ...claudeCode, thinking: { type } });
    expect(request.thinking).toBeNull();
    const stream = answer.stream({ responseId: 'msg_1', created: 1, model: 'm' });
    expect(stream.render({ type: 'start', promptTokens: 1 }, { type: 'reasoning', text: 'Hm' })).toContain('"thinking_delta"');
  });

  it('Claude Code is shown reminders of one turn until the user speaks again', () => {
    const reminder = (text: string) => ({ role: 'system', content: text, clear_at: 'next_user_message' });
    const messages = [{ role: 'user', content: 'Go' }, reminder('Old.'), { role: 'user', content: 'And?' }, reminder('New.')];
    expect(parse('/v1/messages', { ...claudeCode, system: null, messages }).request.prompt).toMatchObject({
      messages: [
        { role: 'user', content: 'Go' },
        { role: 'user', content: 'And?' },
        { role: 'system', content: 'New.' },
      ],
    });
  });

  it('Claude Code with a broken picture or a PDF is refused in the words at which it goes on without them', () => {
    const source = { type: 'base64', media_type: 'image/png', data: 'AA==' };
    const refused = (type: string) => refusal('/v1/messages', { ...claudeCode, messages: [{ role: 'user', content: [{ type, source }] }] });
    expect(refused('image').message).toMatch(/^messages\[0\]\.content\[0\]: could not process image\./);
    expect(refused('document').message).toContain('does not support PDF input');
  });

  it('a client that begins the answer is taken', () => {
    const messages = [
      { role: 'user', content: 'JSON?' },
      { role: 'assistant', content: '{' },
    ];
    const { prompt } = parse('/v1/messages', { model: 'm', max_tokens: 9, messages }).request;
    expect(prompt).toMatchObject({ continuesLast: true, messages: [{ role: 'user' }, { role: 'assistant', content: '{', toolCalls: [] }] });
    expect(parse('/v1/chat/completions', { model: 'm', messages }).request.prompt).toMatchObject({ continuesLast: false });
  });

  it('Claude Code that counts tokens is taken', () => {
    const { model, messages, tools } = claudeCode;
    expect(parse('/v1/messages/count_tokens', { model, messages, tools }).request).toMatchObject({
      task: 'count',
      tools: [{ name: 'Bash' }],
    });
    expect(parse('/v1/messages/count_tokens', { model, messages, tools: [] }).request.tools).toEqual([]);
  });

  it('Claude Code that counts the result of a tool alone is taken', () => {
    const messages = [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'done' }] }];
    const thinking = { type: 'enabled', budget_tokens: 31_999 };
    expect(parse('/v1/messages/count_tokens', { model: 'm', messages, thinking }).request.task).toBe('count');
  });

  it('a client with interleaved thinking may have a budget for several calls of tools', () => {
    const thinking = { type: 'enabled', budget_tokens: 64_000 };
    expect(parse('/v1/messages', { ...claudeCode, max_tokens: 32_000, thinking }).ignored).toContain('thinking.budget_tokens');
  });

  it('Codex with the result of its own shell is taken', () => {
    const input = [
      { type: 'message', role: 'user', content: 'Go' },
      { type: 'local_shell_call', call_id: 'call_1', status: 'completed', action: {} },
      { type: 'function_call_output', call_id: 'call_1', output: 'done' },
    ];
    expect(parse('/v1/responses', { ...codex, input }).request.prompt).toMatchObject({
      messages: [{ role: 'user' }, { role: 'tool', content: 'done', name: null }],
    });
  });

  it('Codex is taken', () => {
    expect(parse('/v1/responses', codex).request).toMatchObject({
      prompt: {
        messages: [
          { role: 'system', content: 'Rules' },
          { role: 'user', content: 'Go' },
          {
            role: 'assistant',
            content: 'Well',
            reasoning: 'Hm',
            toolCalls: [
              { id: 'call_1', name: 'shell', arguments: '{"a":1}' },
              { id: 'call_2', name: 'shell', arguments: '{}' },
            ],
          },
          { role: 'tool', content: 'done', toolCallId: 'call_1', name: 'shell' },
          { role: 'tool', content: 'too', toolCallId: 'call_2', name: 'shell' },
        ],
      },
      tools: [{ name: 'shell' }],
      maxTokens: null,
      responseFormat: { type: 'json_schema', name: 'out', strict: true, schema },
    });
  });

  it.each<[string, TextEndpoint, object]>([
    [
      'opencode (chat)',
      '/v1/chat/completions',
      {
        model: 'm',
        max_tokens: 32000,
        messages: [
          { role: 'system', content: 's' },
          { role: 'user', content: 'a' },
          { role: 'user', content: 'b' },
        ],
        tools: [{ type: 'function', function: { name: 'bash', description: 'd', parameters: schema } }],
        tool_choice: 'auto',
        stream: true,
        stream_options: { include_usage: true },
      },
    ],
    [
      'opencode (responses)',
      '/v1/responses',
      {
        model: 'm',
        input: [
          { role: 'system', content: 's' },
          { role: 'user', content: [{ type: 'input_text', text: 'a' }] },
        ],
        store: false,
        prompt_cache_key: 'k',
        max_output_tokens: 32000,
        stream: true,
      },
    ],
    [
      'the AI SDK (chat)',
      '/v1/chat/completions',
      {
        model: 'm',
        messages: [{ role: 'user', content: 'a' }],
        response_format: { type: 'json_schema', json_schema: { schema, strict: true, name: 'response' } },
      },
    ],
    [
      'the AI SDK (messages)',
      '/v1/messages',
      {
        model: 'm',
        max_tokens: 10,
        messages: [{ role: 'user', content: [{ type: 'text', text: 'a' }] }],
        tools: [{ name: 'json', input_schema: schema, eager_input_streaming: true }],
        tool_choice: { type: 'any', disable_parallel_tool_use: true },
        output_config: { format: { type: 'json_schema', schema } },
      },
    ],
    [
      'LangChain (responses)',
      '/v1/responses',
      { model: 'm', input: [{ type: 'message', role: 'user', content: 'a' }], text: {}, stream: false },
    ],
    [
      'LangChain (messages)',
      '/v1/messages',
      {
        model: 'm',
        max_tokens: 10,
        messages: [{ role: 'user', content: 'a' }],
        tools: [{ name: 'f', description: 'd', input_schema: schema }],
        tool_choice: { type: 'tool', name: 'f' },
      },
    ],
    [
      'the agents SDK',
      '/v1/responses',
      { model: 'm', input: 'a', include: [], tools: [], instructions: null, text: null, reasoning: null, store: true, truncation: 'auto' },
    ],
    ['a chat client at responses', '/v1/responses', { model: 'm', messages: [{ role: 'user', content: 'a' }] }],
  ])('%s is taken', (_client, endpoint, body) => {
    expect(parse(endpoint, body).params).toMatchObject({ endpoint, model: 'm' });
  });
});

describe('messages are refused, with the field named, for', () => {
  const user = { role: 'user', content: 'a' };
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: '' } };
  it.each<[string, string, object]>([
    ['a temperature above 1', 'temperature', { temperature: 1.1 }],
    ['half a top_k', 'top_k', { top_k: 1.5 }],
    ['a negative top_k', 'top_k', { top_k: -1 }],
    ['no max_tokens', 'max_tokens', { max_tokens: undefined }],
    ['no messages', 'messages', { messages: [] }],
    ['an unknown role', 'messages[0].role', { messages: [{ role: 'tool', content: 'a' }] }],
    ['an image', 'messages[0].content[1]', { messages: [{ role: 'user', content: [{ type: 'text', text: 'a' }, image] }] }],
    [
      'an image in a result',
      'messages[0].content[0].content[0]',
      { messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: [image] }] }] },
    ],
    [
      'a file',
      'messages[0].content[0].source',
      { messages: [{ role: 'user', content: [{ type: 'document', source: { type: 'url', url: 'http://x' } }] }] },
    ],
    ['an unknown block', 'messages[0].content[0]', { messages: [{ role: 'user', content: [{ type: 'hologram' }] }] }],
    ['a text block without text', 'messages[0].content[0].text', { messages: [{ role: 'user', content: [{ type: 'text' }] }] }],
    ['no content', 'messages[0].content', { messages: [{ role: 'user', content: [] }] }],
    [
      'a call without name',
      'messages[0].content[0].name',
      { messages: [{ role: 'assistant', content: [{ type: 'tool_use', id: 't' }] }, user] },
    ],
    ['a result of no call', 'messages[0].content[0].tool_use_id', { messages: [{ role: 'user', content: [{ type: 'tool_result' }] }] }],
    [
      'a result of an unknown call',
      'messages[2].content[1].tool_use_id',
      {
        messages: [
          { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f' }] },
          { role: 'system', content: 'a' },
          {
            role: 'user',
            content: [
              { type: 'tool_result', tool_use_id: 't' },
              { type: 'tool_result', tool_use_id: 'u' },
            ],
          },
        ],
      },
    ],
    [
      'a result before its call',
      'messages[0].content[0].tool_use_id',
      {
        messages: [
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't' }] },
          { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f' }] },
          user,
        ],
      },
    ],
    ['a name of a tool with other characters', 'tools[0].name', { tools: [{ name: 'a.b', input_schema: {} }] }],
    ['a name of a tool that is too long', 'tools[0].name', { tools: [{ name: 'a'.repeat(129), input_schema: {} }] }],
    ['a budget that is too low', 'thinking.budget_tokens', { thinking: { type: 'enabled', budget_tokens: 1023 } }],
    [
      'content of a result that is none',
      'messages[0].content[0].content',
      { messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: 3 }] }] },
    ],
    [
      'a call without its result',
      'messages',
      { messages: [user, { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: {} }] }] },
    ],
    ['a tool without schema', 'tools[0].input_schema', { tools: [{ name: 'f' }] }],
    ['a choice of no tool', 'tool_choice', { tool_choice: { type: 'tool', name: 'f' } }],
    ['any of no tools', 'tool_choice', { tools: [{ type: 'tool_search_tool_bm25_20251119', name: 'f' }], tool_choice: { type: 'any' } }],
    ['an unknown choice', 'tool_choice.type', { tool_choice: { type: 'required' } }],
    ['unknown thinking', 'thinking.type', { thinking: { type: 'deep' } }],
    ['a conversation that is kept here', 'thread', { thread: { type: 'continue', previous_message_id: 'msg_1' } }],
    ['a summary of its own kind', 'compaction', { compaction: { type: 'summarize' } }],
    ['servers to fetch from', 'mcp_servers', { mcp_servers: [{ type: 'url', url: 'http://x' }] }],
    ['an unknown format', 'output_config.format', { output_config: { format: { type: 'xml' } } }],
    ['an empty stop sequence', 'stop_sequences[0]', { stop_sequences: [''] }],
    ['top_k below 0', 'top_k', { top_k: -1 }],
  ])('%s', (_case, param, members) => {
    const error = refusal('/v1/messages', { model: 'm', max_tokens: 10, messages: [user], ...members });
    expect(error.param).toBe(param);
    expect(error.message.startsWith(param.split('[')[0] ?? '')).toBe(true);
  });
});

it('members of items and tools that are null are absent', () => {
  const item = { type: null, role: 'user', content: 'Go', id: null, call_id: null, name: null, arguments: null };
  const call = { type: 'function_call', role: null, call_id: 'call_1', name: 'f', arguments: '{}', content: null };
  const tools = [{ type: 'web_search', external_web_access: false, name: null, description: null, parameters: null, strict: null }];
  const { request } = parse('/v1/responses', { model: 'm', input: [item, call], tools });
  expect(request.prompt).toMatchObject({
    messages: [
      { role: 'user', content: 'Go' },
      { role: 'assistant', toolCalls: [{ id: 'call_1', name: 'f' }] },
    ],
  });
});

describe('responses are refused, with the field named, for', () => {
  it.each<[string, string, object]>([
    ['two responses', 'n', { n: 2 }],
    ['logit_bias', 'logit_bias', { logit_bias: { 5: 1 } }],
    ['a top_k that is a text', 'top_k', { top_k: 'x' }],
    ['no input', 'input', { input: undefined }],
    ['an empty input', 'input', { input: [] }],
    ['nothing but unknown items', 'input', { input: [{ type: 'compaction' }] }],
    ['an image', 'input[0].content[0]', { input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'http://x' }] }] }],
    ['a message without role', 'input[0].role', { input: [{ type: 'message', content: 'a' }] }],
    ['a message without content', 'input[0].content', { input: [{ role: 'user' }] }],
    [
      'a result of an unknown call',
      'input[1].call_id',
      {
        input: [
          { type: 'function_call', call_id: 'a', name: 'f', arguments: '' },
          { type: 'function_call_output', call_id: 'b', output: '' },
        ],
      },
    ],
    ['a function with another character in its name', 'tools[0].name', { tools: [{ type: 'function', name: 'a.b' }] }],
    ['a function with a name that is too long', 'tools[0].name', { tools: [{ type: 'function', name: 'a'.repeat(129) }] }],
    ['a call without id', 'input[0].call_id', { input: [{ type: 'function_call', name: 'f', arguments: '' }] }],
    ['arguments that are no text', 'input[0].arguments', { input: [{ type: 'function_call', call_id: 'c', name: 'f', arguments: {} }] }],
    ['a stored item', 'input[0]', { input: [{ type: 'item_reference', id: 'i' }] }],
    ['a stored response', 'previous_response_id', { previous_response_id: 'resp_1' }],
    ['a stored conversation', 'conversation', { conversation: 'conv_1' }],
    ['a stored prompt', 'prompt', { prompt: { id: 'p' } }],
    ['an answer later', 'background', { background: true }],
    ['a required call without tools', 'tool_choice', { tool_choice: 'required' }],
    [
      'a choice of a tool that is not served',
      'tool_choice',
      { tools: [{ type: 'web_search', external_web_access: true }], tool_choice: { type: 'web_search' } },
    ],
    ['a function without name', 'tools[0].name', { tools: [{ type: 'function' }] }],
    ['a schema without name', 'text.format.name', { text: { format: { type: 'json_schema', schema } } }],
    ['an unknown format', 'text.format', { text: { format: { type: 'grammar' } } }],
    ['no room', 'max_output_tokens', { max_output_tokens: 0 }],
  ])('%s', (_case, param, members) => {
    expect(refusal('/v1/responses', { model: 'm', input: 'a', ...members }).param).toBe(param);
  });
});

describe('whatever arrives at any endpoint', () => {
  const texts = [claudeCode, codex].map((body) => JSON.stringify(body));
  const junk = [
    '"',
    '\\',
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    'null',
    'true',
    '\\u0000',
    '0',
    '"type":',
    '"content":',
    '"tool_result"',
    'text',
    '😀',
  ];

  it('is either taken or refused with a RequestError that repeats nothing', () => {
    for (let seed = 1; seed <= 3_000; seed++) {
      const random = new Random(seed);
      let body = random.pick(texts);
      for (let edits = random.below(3) + 1; edits > 0; edits--) {
        const at = random.below(body.length);
        body = body.slice(0, at) + random.text(junk, 2) + body.slice(at + random.below(12));
      }
      try {
        formatFor(random.pick(ENDPOINTS)).parse(new TextEncoder().encode(body));
      } catch (error) {
        expect(error, `seed ${seed}`).toBeInstanceOf(RequestError);
        expect(String(error)).not.toContain('reminder');
      }
    }
  });

  it('keeps its words to itself', () => {
    const secret = 'correct horse battery staple';
    for (const body of [
      { model: 'm', max_tokens: 1, messages: [{ role: 'user', content: [{ type: secret, text: secret }] }] },
      { model: 'm', max_tokens: 1, messages: [{ role: 'assistant', content: [{ type: 'tool_use', name: secret, input: secret }] }] },
      { model: 'm', max_tokens: 1, messages: [{ role: 'user', content: secret }], tool_choice: { type: 'tool', name: secret } },
      { model: 'm', input: [{ type: 'message', role: secret, content: secret }] },
      { model: 'm', input: [{ type: 'function_call', call_id: secret, name: secret, arguments: [secret] }] },
      {
        model: 'm',
        input: secret,
        text: { format: { type: secret } },
        tools: [
          { type: 'function', name: secret },
          { type: 'function', name: secret },
        ],
      },
      { model: 'm', prompt: [secret, secret] },
    ]) {
      for (const endpoint of ENDPOINTS) {
        const { message, param } = refusal(endpoint, {
          ...body,
          temperature: secret,
          tools: secret,
          max_tokens: secret,
          prompt: { secret },
        });
        expect(message + param).not.toContain('horse');
      }
    }
  });
});
