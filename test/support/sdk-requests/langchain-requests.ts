/** Requests of LangChain, in each format that its models write. */
import { ChatAnthropic } from '@langchain/anthropic';
import type { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { AIMessage, type BaseMessage, HumanMessage, SystemMessage } from '@langchain/core/messages';
import { ChatOpenAI, OpenAI, OpenAIEmbeddings } from '@langchain/openai';
import {
  inTurn,
  longQuestionOf,
  MAX_RETRIES,
  questionOf,
  type RequestKind,
  require,
  requireUnit,
  requireUnitVector,
  type SdkRequest,
  TOOL,
  TOOL_QUESTION,
  UNIT_SCHEMA,
} from './sdk-request.js';

const MAX_TOKENS = 24;

const configurationOf = ({ baseUrl, fetch }: SdkRequest) => ({ baseURL: `${baseUrl}/v1`, fetch });

function modelOf(request: SdkRequest, changes: { readonly maxTokens?: number; readonly temperature?: number } = {}): BaseChatModel {
  const { apiKey, models, baseUrl, fetch } = request;
  const fields = { model: models.text, apiKey, maxTokens: MAX_TOKENS, maxRetries: MAX_RETRIES, ...changes };
  const configuration = configurationOf(request);
  return inTurn<BaseChatModel>(request, [
    () => new ChatOpenAI({ ...fields, configuration }),
    () => new ChatOpenAI({ ...fields, configuration, useResponsesApi: true }),
    () => new ChatAnthropic({ ...fields, anthropicApiUrl: baseUrl, clientOptions: { fetch } }),
  ]);
}

const definition = { type: 'function' as const, function: { name: TOOL.name, description: TOOL.description, parameters: TOOL.parameters } };

export const LANGCHAIN_REQUESTS: readonly RequestKind[] = [
  {
    name: 'chat',
    weight: 6,
    async run(request) {
      const messages = [new SystemMessage(request.canary), new HumanMessage(questionOf(request))];
      const { usage_metadata: usage }: { usage_metadata?: unknown } = await modelOf(request).invoke(messages);
      require(JSON.stringify(usage).includes('"output_tokens":'), 'an answer with usage');
    },
  },
  {
    name: 'chat stream',
    weight: 6,
    async run(request) {
      let chunkCount = 0;
      for await (const _ of await modelOf(request).stream(questionOf(request))) chunkCount++;
      require(chunkCount > 0, 'chunks');
    },
  },
  {
    name: 'chat of several turns',
    weight: 3,
    async run(request) {
      const model = modelOf(request);
      const messages: BaseMessage[] = [];
      for (let turn = 0; turn < 3; turn++) {
        messages.push(new HumanMessage(questionOf(request)));
        messages.push(new AIMessage((await model.invoke(messages)).text || '-'));
      }
    },
  },
  ...[false, true].map(
    (isStreamed): RequestKind => ({
      name: `chat with tools${isStreamed ? ' stream' : ''}`,
      weight: 2,
      async run(request) {
        const model = modelOf(request, { maxTokens: 100, temperature: 0 }).bindTools?.([definition]);
        require(model !== undefined, 'a model with tools');
        let answer: { tool_calls?: unknown; concat?(chunk: never): unknown } | undefined;
        if (!isStreamed) answer = (await model.invoke(TOOL_QUESTION)) as typeof answer;
        else {
          for await (const chunk of await model.stream(TOOL_QUESTION)) {
            answer = (answer === undefined ? chunk : answer.concat?.(chunk as never)) as typeof answer;
          }
        }
        require(JSON.stringify(answer?.tool_calls).includes('"city":"Paris"'), 'a call with the city');
      },
    }),
  ),
  {
    name: 'structured output',
    weight: 2,
    async run(request) {
      const { apiKey, models } = request;
      const fields = { model: models.text, apiKey, maxTokens: MAX_TOKENS, maxRetries: MAX_RETRIES };
      const model = new ChatOpenAI({ ...fields, configuration: configurationOf(request), useResponsesApi: request.random.happens(0.5) });
      const bound = model.withStructuredOutput(UNIT_SCHEMA, { name: 'unit', method: 'jsonSchema', strict: true });
      requireUnit(JSON.stringify(await bound.invoke(questionOf(request))));
    },
  },
  {
    name: 'chat stream that the caller aborts',
    weight: 2,
    ends: 'refused',
    async run(request) {
      const leaving = new AbortController();
      let isAborted = false;
      try {
        const stream = await modelOf(request, { maxTokens: 400 }).stream(longQuestionOf(request), { signal: leaving.signal });
        for await (const { text } of stream) if (text !== '') leaving.abort();
      } catch (error) {
        isAborted = leaving.signal.aborted && error instanceof Error;
      }
      require(isAborted, 'the end of an aborted stream');
    },
  },
  {
    name: 'completion',
    weight: 2,
    async run(request) {
      const { apiKey, models } = request;
      const fields = { model: models.text, apiKey, maxTokens: 12, maxRetries: MAX_RETRIES };
      const model = new OpenAI({ ...fields, configuration: configurationOf(request) });
      require(typeof (await model.invoke(request.canary)) === 'string', 'a text');
    },
  },
  {
    name: 'embeddings',
    weight: 2,
    async run(request) {
      const { apiKey, models } = request;
      const embeddings = new OpenAIEmbeddings({
        model: models.embedding,
        apiKey,
        maxRetries: MAX_RETRIES,
        configuration: configurationOf(request),
      });
      const vectors = await embeddings.embedDocuments([request.canary, questionOf(request)]);
      require(vectors.length === 2, 'two vectors');
      for (const vector of vectors) requireUnitVector(vector);
    },
  },
];
