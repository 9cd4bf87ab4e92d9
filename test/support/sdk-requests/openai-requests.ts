/** Requests of the OpenAI SDK. */
import OpenAI from 'openai';
import {
  IMAGE_SIZE,
  longQuestionOf,
  MAX_RETRIES,
  questionOf,
  type RequestKind,
  require,
  requirePng,
  requireUnit,
  requireUnitVector,
  type SdkRequest,
  TOOL,
  TOOL_QUESTION,
  TOOL_RESULT,
  tooLongPromptOf,
  UNIT_SCHEMA,
} from './sdk-request.js';

const clientOf = ({ baseUrl, apiKey, fetch }: SdkRequest): OpenAI =>
  new OpenAI({ baseURL: `${baseUrl}/v1`, apiKey, fetch, maxRetries: MAX_RETRIES });

const chatOf = (request: SdkRequest) => ({
  model: request.models.text,
  messages: [
    { role: 'system' as const, content: request.canary },
    { role: 'user' as const, content: questionOf(request) },
  ],
  max_tokens: 24,
  seed: request.random.below(1000),
});

const responseFormat = { type: 'json_schema' as const, json_schema: { name: 'unit', strict: true, schema: UNIT_SCHEMA } };

export const OPENAI_REQUESTS: readonly RequestKind[] = [
  {
    name: 'chat',
    weight: 6,
    async run(request) {
      const { choices, usage } = await clientOf(request).chat.completions.create(chatOf(request));
      require(choices[0]?.message.role === 'assistant' && (usage?.completion_tokens ?? 0) > 0, 'an answer with usage');
    },
  },
  {
    name: 'chat stream',
    weight: 6,
    async run(request) {
      const stream = clientOf(request).chat.completions.stream({ ...chatOf(request), stream_options: { include_usage: true } });
      let shown = '';
      stream.on('content', (delta) => {
        shown += delta;
      });
      const { choices } = await stream.finalChatCompletion();
      require((choices[0]?.message.content ?? '') === shown, 'deltas that make up the answer');
    },
  },
  {
    name: 'chat of several turns',
    weight: 3,
    async run(request) {
      const client = clientOf(request);
      const messages: OpenAI.ChatCompletionMessageParam[] = [];
      for (let turn = 0; turn < 3; turn++) {
        messages.push({ role: 'user', content: questionOf(request) });
        const { choices } = await client.chat.completions.create({ model: request.models.text, messages, max_tokens: 12 });
        require(choices[0] !== undefined, 'an answer');
        messages.push(choices[0].message);
      }
    },
  },
  ...[false, true].map(
    (stream): RequestKind => ({
      name: `chat with tools${stream ? ' stream' : ''}`,
      weight: 2,
      async run(request) {
        const cities: string[] = [];
        const run = ({ city }: { city: string }): string => {
          cities.push(city);
          return TOOL_RESULT;
        };
        const { name, description, parameters } = TOOL;
        const parse = JSON.parse as (text: string) => { city: string };
        const tools = [{ type: 'function' as const, function: { name, description, parameters, parse, function: run } }];
        const body = { model: request.models.text, messages: [{ role: 'user' as const, content: TOOL_QUESTION }], temperature: 0, tools };
        const { completions } = clientOf(request).chat;
        const runner = stream ? completions.runTools({ ...body, stream }) : completions.runTools(body);
        require((await runner.finalContent())?.includes(TOOL_RESULT) === true && cities.join() === 'Paris', 'a tool call and its result');
      },
    }),
  ),
  {
    name: 'chat with a schema',
    weight: 2,
    async run(request) {
      const { choices } = await clientOf(request).chat.completions.create({ ...chatOf(request), response_format: responseFormat });
      requireUnit(choices[0]?.message.content ?? '');
    },
  },
  {
    name: 'chat stream that the caller leaves',
    weight: 2,
    ends: 'refused',
    async run(request) {
      const messages = [{ role: 'user' as const, content: longQuestionOf(request) }];
      const stream = await clientOf(request).chat.completions.create({
        model: request.models.text,
        messages,
        max_tokens: 400,
        stream: true,
      });
      for await (const { choices } of stream) if ((choices[0]?.delta.content ?? '') !== '') break;
    },
  },
  {
    name: 'chat that the provider refuses',
    weight: 1,
    isProviderRefusal: true,
    async run(request) {
      const messages = [{ role: 'user' as const, content: tooLongPromptOf(request) }];
      const error: unknown = await clientOf(request)
        .chat.completions.create({ model: request.models.text, messages, max_tokens: 8 })
        .catch((reason: unknown) => reason);
      require(error instanceof OpenAI.BadRequestError && error.code === 'context_length_exceeded', 'the refusal of a long prompt');
    },
  },
  {
    name: 'response',
    weight: 3,
    async run(request) {
      const body = { model: request.models.text, input: questionOf(request), max_output_tokens: 24 };
      const { status } = await clientOf(request).responses.create(body);
      require(status === 'completed' || status === 'incomplete', `a complete response, not ${status}`);
    },
  },
  {
    name: 'response stream',
    weight: 3,
    async run(request) {
      const body = { model: request.models.text, input: questionOf(request), max_output_tokens: 24, stream: true as const };
      let last = '';
      for await (const { type } of await clientOf(request).responses.create(body)) last = type;
      require(/^response\.(completed|incomplete)$/.test(last), `a terminal event, not ${last}`);
    },
  },
  {
    name: 'response stream with tools',
    weight: 2,
    async run(request) {
      const { name, description, parameters } = TOOL;
      const tools = [{ type: 'function' as const, name, description, parameters, strict: true }];
      const { output } = await clientOf(request)
        .responses.stream({ model: request.models.text, input: TOOL_QUESTION, temperature: 0, tools })
        .finalResponse();
      const [first] = output;
      require(first?.type === 'function_call' && first.arguments.includes('Paris'), 'a function call');
    },
  },
  {
    name: 'response with a schema',
    weight: 1,
    async run(request) {
      const text = { format: { type: 'json_schema' as const, name: 'unit', strict: true, schema: UNIT_SCHEMA } };
      const body = { model: request.models.text, input: questionOf(request), max_output_tokens: 24, text };
      requireUnit((await clientOf(request).responses.create(body)).output_text);
    },
  },
  {
    name: 'completion',
    weight: 2,
    async run(request) {
      const { choices } = await clientOf(request).completions.create({
        model: request.models.text,
        prompt: `Once upon a time ${request.canary}`,
        max_tokens: 12,
        stop: [' the'],
      });
      require(choices.length === 1, 'one choice');
    },
  },
  {
    name: 'completion stream',
    weight: 2,
    async run(request) {
      const body = { model: request.models.text, prompt: request.canary, max_tokens: 12, stream: true as const };
      let reason: string | null = null;
      for await (const { choices } of await clientOf(request).completions.create(body)) reason = choices[0]?.finish_reason ?? reason;
      require(reason === 'stop' || reason === 'length', `a finish reason, not ${reason}`);
    },
  },
  {
    name: 'embeddings',
    weight: 3,
    async run(request) {
      const input = [request.canary, questionOf(request)];
      const encoding = request.random.happens(0.5) ? { encoding_format: 'float' as const } : {};
      const { data } = await clientOf(request).embeddings.create({ model: request.models.embedding, input, ...encoding });
      require(data.length === input.length, 'a vector for each text');
      for (const { embedding } of data) requireUnitVector(embedding);
    },
  },
  {
    name: 'images',
    weight: 1,
    async run(request) {
      const n = 1 + request.random.below(2);
      const { data } = await clientOf(request).images.generate({
        model: request.models.image,
        prompt: `a red circle ${request.canary}`,
        n,
        // A size of the demo model, which the SDK does not know.
        size: IMAGE_SIZE as '256x256',
        response_format: 'b64_json',
      });
      require(data?.length === n, `${n} images`);
      for (const { b64_json } of data) requirePng(b64_json);
    },
  },
];
