/** Requests of the Vercel AI SDK, in each format that its adapters write. */
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import {
  embed,
  embedMany,
  generateImage,
  generateObject,
  generateText,
  jsonSchema,
  type LanguageModel,
  stepCountIs,
  streamObject,
  streamText,
  tool,
} from 'ai';
import {
  IMAGE_SIZE,
  inTurn,
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
  UNIT_SCHEMA,
} from './sdk-request.js';

const openAiOf = ({ baseUrl, apiKey, fetch }: SdkRequest) => createOpenAI({ baseURL: `${baseUrl}/v1`, apiKey, fetch });

function modelOf(request: SdkRequest): LanguageModel {
  const { baseUrl, apiKey, fetch, models } = request;
  return inTurn<LanguageModel>(request, [
    () => openAiOf(request).chat(models.text),
    () => openAiOf(request).responses(models.text),
    () => createAnthropic({ baseURL: `${baseUrl}/v1`, apiKey, fetch })(models.text),
  ]);
}

/** `store: false`: later turns contain the conversation instead of an id. */
const shared = { maxRetries: MAX_RETRIES, providerOptions: { openai: { store: false } } };
const schema = jsonSchema<{ unit: string }>(UNIT_SCHEMA);
const tools = {
  [TOOL.name]: tool({
    description: TOOL.description,
    inputSchema: jsonSchema<{ city: string }>(TOOL.parameters),
    execute: async () => TOOL_RESULT,
  }),
};

const toolBodyOf = (request: SdkRequest) => ({
  ...shared,
  model: modelOf(request),
  prompt: TOOL_QUESTION,
  temperature: 0,
  maxOutputTokens: 100,
  tools,
  stopWhen: stepCountIs(3),
});

export const VERCEL_REQUESTS: readonly RequestKind[] = [
  {
    name: 'text',
    weight: 6,
    async run(request) {
      const { usage } = await generateText({ ...shared, model: modelOf(request), prompt: questionOf(request), maxOutputTokens: 24 });
      require((usage.outputTokens ?? 0) > 0, 'an answer with usage');
    },
  },
  {
    name: 'text stream',
    weight: 6,
    async run(request) {
      const stream = streamText({ ...shared, model: modelOf(request), prompt: questionOf(request), maxOutputTokens: 24 });
      let shown = '';
      for await (const part of stream.textStream) shown += part;
      require(shown === (await stream.text) && (await stream.finishReason) !== 'error', 'parts that make up the text');
    },
  },
  {
    name: 'text of several turns',
    weight: 3,
    async run(request) {
      const model = modelOf(request);
      const messages: { role: 'user' | 'assistant'; content: string }[] = [];
      for (let turn = 0; turn < 3; turn++) {
        messages.push({ role: 'user', content: questionOf(request) });
        const { text } = await generateText({ ...shared, model, messages, maxOutputTokens: 12 });
        messages.push({ role: 'assistant', content: text || '-' });
      }
    },
  },
  {
    name: 'text with tools',
    weight: 2,
    async run(request) {
      const { text } = await generateText(toolBodyOf(request));
      require(text.includes(TOOL_RESULT), 'the result of the tool');
    },
  },
  {
    name: 'text stream with tools',
    weight: 2,
    async run(request) {
      require((await streamText(toolBodyOf(request)).text).includes(TOOL_RESULT), 'the result of the tool');
    },
  },
  {
    name: 'object',
    weight: 2,
    async run(request) {
      const { object } = await generateObject({
        ...shared,
        model: modelOf(request),
        schema,
        prompt: questionOf(request),
        maxOutputTokens: 100,
      });
      requireUnit(JSON.stringify(object));
    },
  },
  {
    name: 'object stream',
    weight: 2,
    async run(request) {
      const stream = streamObject({ ...shared, model: modelOf(request), schema, prompt: questionOf(request), maxOutputTokens: 100 });
      for await (const _ of stream.partialObjectStream);
      requireUnit(JSON.stringify(await stream.object));
    },
  },
  {
    name: 'text stream that the caller aborts',
    weight: 2,
    ends: 'refused',
    async run(request) {
      const leaving = new AbortController();
      const prompt = longQuestionOf(request);
      const stream = streamText({ ...shared, model: modelOf(request), prompt, maxOutputTokens: 400, abortSignal: leaving.signal });
      let isAborted = false;
      for await (const { type } of stream.fullStream) {
        if (type === 'text-delta') leaving.abort();
        isAborted ||= type === 'abort';
      }
      require(isAborted, 'the end of an aborted stream');
    },
  },
  {
    name: 'completion',
    weight: 2,
    async run(request) {
      const model = openAiOf(request).completion(request.models.text);
      const { finishReason } = await generateText({ ...shared, model, prompt: request.canary, maxOutputTokens: 12 });
      require(finishReason === 'stop' || finishReason === 'length', `a finish reason, not ${finishReason}`);
    },
  },
  {
    name: 'embedding',
    weight: 2,
    async run(request) {
      const model = openAiOf(request).embedding(request.models.embedding);
      requireUnitVector((await embed({ maxRetries: MAX_RETRIES, model, value: request.canary })).embedding);
    },
  },
  {
    name: 'embeddings',
    weight: 2,
    async run(request) {
      const model = openAiOf(request).embedding(request.models.embedding);
      const { embeddings } = await embedMany({ maxRetries: MAX_RETRIES, model, values: [request.canary, questionOf(request)] });
      require(embeddings.length === 2, 'two vectors');
      for (const embedding of embeddings) requireUnitVector(embedding);
    },
  },
  {
    name: 'image',
    weight: 1,
    async run(request) {
      const model = openAiOf(request).image(request.models.image);
      const { image } = await generateImage({
        maxRetries: MAX_RETRIES,
        model,
        prompt: `a blue square ${request.canary}`,
        size: IMAGE_SIZE,
      });
      requirePng(image.base64);
    },
  },
];
