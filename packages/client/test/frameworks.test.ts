/** Frameworks that take a `fetch`: Vercel AI SDK and LangChain. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { ChatOpenAI } from '@langchain/openai';
import { generateText, streamText } from 'ai';
import { describe, expect, test } from 'vitest';
import { createVerifiedFetch } from '../src/node.js';
import { hello } from './answers.js';
import { BASE_URL, MODEL, NOW, POLICY, ScriptedNetwork, scriptedProvider } from './scripted-network.js';

const ONLY = scriptedProvider();
const PROMPT = 'a prompt that nobody else reads';

function verified(network: ScriptedNetwork) {
  return createVerifiedFetch({ baseURL: BASE_URL, policy: POLICY, fetch: network.fetch, now: () => NOW });
}

function refusing(): ScriptedNetwork {
  const network = new ScriptedNetwork(hello, 1, [ONLY]);
  network.changes = { receipt: { model: 'cheaper' } };
  return network;
}

describe('the Vercel AI SDK', () => {
  const modelOf = (network: ScriptedNetwork) =>
    createOpenAICompatible({ name: 'sealed', baseURL: `${BASE_URL}/v1`, apiKey: 'k', fetch: verified(network) })(MODEL);

  test('generates and streams', async () => {
    const network = new ScriptedNetwork(hello, 1, [ONLY]);
    const model = modelOf(network);
    expect((await generateText({ model, prompt: PROMPT })).text).toBe('Hello');
    let text = '';
    for await (const part of streamText({ model, prompt: PROMPT }).textStream) text += part;
    expect(text).toBe('Hello');
    expect(network.opened.map(({ context }) => context.stream)).toEqual([false, true]);
  });

  test('reports a refusal without repeating the request', async () => {
    const network = refusing();
    await expect(generateText({ model: modelOf(network), prompt: PROMPT })).rejects.toThrow('The receipt names another model.');
    expect(network.sealedRequests).toHaveLength(1);
  });
});

describe('LangChain', () => {
  const modelOf = (network: ScriptedNetwork) =>
    new ChatOpenAI({ model: MODEL, apiKey: 'k', configuration: { baseURL: `${BASE_URL}/v1`, fetch: verified(network) } });

  test('generates and streams', async () => {
    const network = new ScriptedNetwork(hello, 1, [ONLY]);
    const model = modelOf(network);
    expect((await model.invoke(PROMPT)).text).toBe('Hello');
    let text = '';
    for await (const chunk of await model.stream(PROMPT)) text += chunk.text;
    expect(text).toBe('Hello');
    expect(network.opened.map(({ context }) => context.stream)).toEqual([false, true]);
  });

  test('reports a refusal without repeating the request', async () => {
    const network = refusing();
    await expect(modelOf(network).invoke(PROMPT)).rejects.toThrow('The receipt names another model.');
    expect(network.sealedRequests).toHaveLength(1);
  });
});
