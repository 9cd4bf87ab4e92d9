/** Third-party clients of the public formats, unmodified, against a whole network with the real model. */
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { ChatAnthropic } from '@langchain/anthropic';
import { ChatOpenAI } from '@langchain/openai';
import { generateText, type LanguageModel, streamText } from 'ai';
import OldAnthropic from 'anthropic-old';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DemoNetwork } from './support/demo-network.js';
import { failuresOfSharedNetwork, sharedNetwork } from './support/shared-network.js';

let network: DemoNetwork;

beforeAll(async () => {
  network = await sharedNetwork();
});
afterAll(() => expect(failuresOfSharedNetwork()).toEqual([]));

const prompt = 'What is the capital of France?';
const answer = 'The capital of France is Paris.';

describe('the Vercel AI SDK', () => {
  const models = (): [string, LanguageModel][] => {
    const openai = createOpenAI({ baseURL: `${network.baseUrl}/v1`, apiKey: network.apiKey });
    const anthropic = createAnthropic({ baseURL: `${network.baseUrl}/v1`, apiKey: network.apiKey });
    return [
      ['chat', openai.chat(network.model)],
      ['responses', openai.responses(network.model)],
      ['completion', openai.completion(network.model)],
      ['messages', anthropic(network.model)],
    ];
  };

  it('gets text in every format, streamed or not', async () => {
    for (const [name, model] of models()) {
      const whole = await generateText({ model, prompt, temperature: 0, maxOutputTokens: 40, maxRetries: 0 });
      const stream = streamText({ model, prompt, temperature: 0, maxOutputTokens: 40, maxRetries: 0 });
      let streamed = '';
      for await (const piece of stream.textStream) streamed += piece;
      expect(streamed, name).toBe(whole.text);
      if (name === 'completion') expect(whole.text, name).toMatch(/\w/);
      else expect(whole.text, name).toBe(answer);
      expect(whole.usage.outputTokens, name).toBeGreaterThan(0);
      expect((await stream.usage).outputTokens, name).toBe(whole.usage.outputTokens);
    }
  });
});

describe('LangChain', () => {
  it('gets text from both of its providers, streamed or not', async () => {
    const clients = [
      new ChatOpenAI({ model: network.model, apiKey: network.apiKey, temperature: 0, configuration: { baseURL: `${network.baseUrl}/v1` } }),
      new ChatAnthropic({ model: network.model, apiKey: network.apiKey, temperature: 0, maxTokens: 40, anthropicApiUrl: network.baseUrl }),
    ];
    for (const client of clients) {
      expect((await client.invoke(prompt)).text).toBe(answer);
      let streamed = '';
      for await (const chunk of await client.stream(prompt)) streamed += chunk.text;
      expect(streamed).toBe(answer);
    }
  });
});

describe('an old Anthropic client, which sends x-api-key', () => {
  it('gets a message, streamed or not', async () => {
    const client = new OldAnthropic({ baseURL: network.baseUrl, apiKey: network.apiKey, maxRetries: 0 });
    const request = { model: network.model, max_tokens: 40, temperature: 0, messages: [{ role: 'user' as const, content: prompt }] };
    expect((await client.messages.create(request)).content).toMatchObject([{ type: 'text', text: answer }]);
    expect((await client.messages.stream(request).finalMessage()).content).toMatchObject([{ type: 'text', text: answer }]);
  });
});
