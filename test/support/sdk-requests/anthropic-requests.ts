/** Requests of the Anthropic SDK. */
import Anthropic from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';
import {
  longQuestionOf,
  MAX_RETRIES,
  questionOf,
  type RequestKind,
  require,
  requireUnit,
  type SdkRequest,
  TOOL,
  TOOL_QUESTION,
  TOOL_RESULT,
  tooLongPromptOf,
  UNIT_SCHEMA,
} from './sdk-request.js';

const clientOf = ({ baseUrl, apiKey, fetch }: SdkRequest): Anthropic =>
  new Anthropic({ baseURL: baseUrl, apiKey, fetch, maxRetries: MAX_RETRIES });

const messageOf = (request: SdkRequest) => ({
  model: request.models.text,
  max_tokens: 24,
  system: request.canary,
  messages: [{ role: 'user' as const, content: questionOf(request) }],
});

export const ANTHROPIC_REQUESTS: readonly RequestKind[] = [
  {
    name: 'message',
    weight: 6,
    async run(request) {
      const { role, usage } = await clientOf(request).messages.create(messageOf(request));
      require(role === 'assistant' && usage.output_tokens > 0, 'an answer with usage');
    },
  },
  {
    name: 'message stream',
    weight: 6,
    async run(request) {
      const stream = clientOf(request).messages.stream(messageOf(request));
      let shown = '';
      stream.on('text', (delta) => {
        shown += delta;
      });
      const { content } = await stream.finalMessage();
      const text = content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('');
      require(text === shown, 'deltas that make up the message');
    },
  },
  {
    name: 'message of several turns',
    weight: 3,
    async run(request) {
      const client = clientOf(request);
      const messages: Anthropic.MessageParam[] = [];
      for (let turn = 0; turn < 3; turn++) {
        messages.push({ role: 'user', content: [{ type: 'text', text: questionOf(request) }] });
        const { content } = await client.messages.create({ ...messageOf(request), max_tokens: 12, messages });
        messages.push({ role: 'assistant', content });
      }
    },
  },
  ...[false, true].map(
    (stream): RequestKind => ({
      name: `message with tools${stream ? ' stream' : ''}`,
      weight: 2,
      async run(request) {
        const cities: string[] = [];
        const run = ({ city }: { city: string }): string => {
          cities.push(city);
          return TOOL_RESULT;
        };
        const tools = [betaTool({ name: TOOL.name, description: TOOL.description, inputSchema: TOOL.parameters, run })];
        const messages = [{ role: 'user' as const, content: TOOL_QUESTION }];
        const body = { model: request.models.text, max_tokens: 100, temperature: 0, messages, tools, stream, thread: false as const };
        const { content } = await clientOf(request).beta.messages.toolRunner(body).runUntilDone();
        require(JSON.stringify(content).includes(TOOL_RESULT) && cities.join() === 'Paris', 'a tool call and its result');
      },
    }),
  ),
  {
    name: 'message with a schema',
    weight: 2,
    async run(request) {
      const output_config = { format: { type: 'json_schema' as const, schema: UNIT_SCHEMA } };
      const { content } = await clientOf(request).messages.create({ ...messageOf(request), output_config });
      const [first] = content;
      requireUnit(first?.type === 'text' ? first.text : '');
    },
  },
  {
    name: 'message stream that the caller aborts',
    weight: 2,
    ends: 'refused',
    async run(request) {
      const messages = [{ role: 'user' as const, content: longQuestionOf(request) }];
      const stream = clientOf(request).messages.stream({ model: request.models.text, max_tokens: 400, messages });
      stream.once('text', () => stream.abort());
      const error: unknown = await stream.finalMessage().catch((reason: unknown) => reason);
      require(error instanceof Anthropic.APIUserAbortError, 'the end of an aborted stream');
    },
  },
  {
    name: 'message that the provider refuses',
    weight: 1,
    isProviderRefusal: true,
    async run(request) {
      const messages = [{ role: 'user' as const, content: tooLongPromptOf(request) }];
      const error: unknown = await clientOf(request)
        .messages.create({ model: request.models.text, max_tokens: 8, messages })
        .catch((reason: unknown) => reason);
      require(error instanceof Anthropic.BadRequestError, 'the refusal of a long prompt');
    },
  },
  {
    name: 'token count',
    weight: 3,
    async run(request) {
      const { max_tokens: _, ...body } = messageOf(request);
      require((await clientOf(request).messages.countTokens(body)).input_tokens > 0, 'a count');
    },
  },
];
