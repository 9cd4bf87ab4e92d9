/** Images as input through a whole network with the demo vision model: official SDKs, coding agents' requests, and end-to-end mode. */

import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createAnthropic } from '@ai-sdk/anthropic';
import Anthropic from '@anthropic-ai/sdk';
import { createVerifiedFetch, imageFromBytes, verdictOf } from '@inference/client';
import { HumanMessage } from '@langchain/core/messages';
import { ChatOpenAI } from '@langchain/openai';
import { generateText } from 'ai';
import OpenAI from 'openai';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { visionSnippet } from '../apps/console/src/pages/client/snippets.js';
import { type DemoNetwork, startDemoNetwork } from './support/demo-network.js';
import { ROOT } from './support/npm-start.js';
import { runNode } from './support/run-command.js';

/** Colours that the demo vision model was trained on. */
const ORANGE = 'rgb(247,140,20)';
const PURPLE = 'rgb(128,42,170)';
const CIRCLE = /^An? orange circle on a purple (?:back)?ground\.$/;
const SQUARE = /^An? purple square on an orange (?:back)?ground\.$/;
const QUESTION = 'What is on it?';

let network: DemoNetwork;
let dispose: (() => Promise<void>) | undefined;
let anthropic: Anthropic;
let model: string;
let circle: ReturnType<typeof imageFromBytes>;
let square: ReturnType<typeof imageFromBytes>;

beforeAll(async () => {
  const models = ['demo-text', 'demo-image', 'demo-vision'].flatMap((name) => ['--model', name]);
  ({ network, dispose } = await startDemoNetwork({ providerArgs: [...models, '--context', '512'] }));
  anthropic = new Anthropic({ baseURL: network.baseUrl, apiKey: network.apiKey, maxRetries: 0 });
  model = network.visionModels[0] as string;
  circle = await drawing(PURPLE, `<circle cx="64" cy="64" r="34" fill="${ORANGE}"/>`);
  square = await drawing(ORANGE, `<rect x="36" y="36" width="56" height="56" fill="${PURPLE}"/>`);
});
afterAll(() => dispose?.());

async function drawing(ground: string, figure: string) {
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="128" height="128"><rect width="128" height="128" fill="${ground}"/>${figure}</svg>`;
  return imageFromBytes(await sharp(Buffer.from(svg)).png().toBuffer());
}

const imagePart = ({ dataUri }: { readonly dataUri: string }) => ({ type: 'image_url' as const, image_url: { url: dataUri } });
const textPart = { type: 'text' as const, text: QUESTION };
const inputImage = ({ dataUri }: { readonly dataUri: string }) => ({
  type: 'input_image' as const,
  image_url: dataUri,
  detail: 'auto' as const,
});
const imageBlock = ({ base64 }: { readonly base64: string }): Anthropic.ImageBlockParam => ({
  type: 'image',
  source: { type: 'base64', media_type: 'image/png', data: base64 },
});

describe('the OpenAI SDK', () => {
  it('asks about an image, streamed or not, and about another one in the next turn', async () => {
    const question = { role: 'user' as const, content: [imagePart(circle), textPart] };
    const body = { model, temperature: 0, messages: [question] };
    const plain = await network.openai.chat.completions.create(body);
    const answer = plain.choices[0]?.message.content ?? '';
    expect(answer).toMatch(CIRCLE);
    expect(plain.usage?.prompt_tokens).toBeGreaterThan(64);
    const streamed = await network.openai.chat.completions.stream({ ...body, stream: true }).finalChatCompletion();
    expect(streamed.choices[0]?.message.content).toBe(answer);
    const next = await network.openai.chat.completions.create({
      ...body,
      messages: [question, { role: 'assistant', content: answer }, { role: 'user', content: [imagePart(square), textPart] }],
    });
    expect(next.choices[0]?.message.content).toMatch(SQUARE);
  });

  it('asks through responses, streamed or not', async () => {
    const input = [{ role: 'user' as const, content: [inputImage(circle), { type: 'input_text' as const, text: QUESTION }] }];
    const { output_text } = await network.openai.responses.create({ model, temperature: 0, input });
    expect(output_text).toMatch(CIRCLE);
    const streamed = await network.openai.responses.stream({ model, temperature: 0, input }).finalResponse();
    expect(streamed.output_text).toBe(output_text);
  });

  it('is told which part is no image', async () => {
    const content = [imagePart(circle), { type: 'image_url' as const, image_url: { url: 'data:image/png;base64,AAAA' } }, textPart];
    const asked = network.openai.chat.completions.create({ model, messages: [{ role: 'user', content }] });
    await expect(asked).rejects.toMatchObject({ status: 400, param: 'messages[0].content[1]' });
  });

  it('is told that a model reads text only', async () => {
    const messages = [{ role: 'user' as const, content: [imagePart(circle), textPart] }];
    const asked = network.openai.chat.completions.create({ model: network.model, messages });
    await expect(asked).rejects.toMatchObject({ status: 400, param: 'messages[0].content[0]' });
  });
});

describe('the Anthropic SDK', () => {
  it('asks about an image, streamed or not, and counts its tokens', async () => {
    const messages: Anthropic.MessageParam[] = [{ role: 'user', content: [imageBlock(circle), textPart] }];
    const body = { model, max_tokens: 40, temperature: 0, messages };
    const message = await anthropic.messages.create(body);
    expect(message.content).toMatchObject([{ type: 'text', text: expect.stringMatching(CIRCLE) }]);
    expect((await anthropic.messages.stream(body).finalMessage()).content).toEqual(message.content);
    expect((await anthropic.messages.countTokens({ model, messages })).input_tokens).toBe(message.usage.input_tokens);
  });
});

describe('other clients', () => {
  it('the AI SDK and LangChain ask about an image', async () => {
    const provider = createAnthropic({ baseURL: `${network.baseUrl}/v1`, apiKey: network.apiKey });
    const content = [{ type: 'image' as const, image: circle.dataUri }, textPart];
    const { text } = await generateText({ model: provider(model), temperature: 0, maxRetries: 0, messages: [{ role: 'user', content }] });
    expect(text).toMatch(CIRCLE);
    const chain = new ChatOpenAI({
      model,
      temperature: 0,
      apiKey: network.apiKey,
      maxRetries: 0,
      configuration: { baseURL: `${network.baseUrl}/v1` },
    });
    expect((await chain.invoke([new HumanMessage({ content: [imagePart(circle), textPart] })])).content).toMatch(CIRCLE);
  });

  it('a client in end-to-end mode seals the image', async () => {
    const fetch = createVerifiedFetch({ baseURL: network.baseUrl, policy: { allowSimulated: true } });
    const sealing = new OpenAI({ baseURL: `${network.baseUrl}/v1`, apiKey: network.apiKey, fetch, maxRetries: 0 });
    const messages = [{ role: 'user' as const, content: [imagePart(circle), textPart] }];
    const { data, response } = await sealing.chat.completions.create({ model, temperature: 0, messages }).withResponse();
    expect(data.choices[0]?.message.content).toMatch(CIRCLE);
    expect(verdictOf(response)).toMatchObject({ state: 'verified' });
  });
});

it('the quick start draws an image and asks what is on it', async () => {
  const { code } = visionSnippet({ base: network.baseUrl, key: network.apiKey, model }, network.imageModels[0] as string);
  // Fixed seed and temperature 0, because assertions depend on the text.
  const drawing = code.replace("response_format: 'b64_json'", "response_format: 'b64_json',\n  size: '256x256',\n  seed: 7");
  const file = join(ROOT, 'test', `.quick-start-vision-${process.pid}.mjs`);
  writeFileSync(file, drawing.replace('completions.create({', 'completions.create({\n  temperature: 0,'));
  try {
    const { stdout, output } = await runNode([file]);
    expect(stdout, output).toMatch(/Two orange triangles/);
  } finally {
    rmSync(file);
  }
});

describe('coding agents with a screenshot', () => {
  const text = (request: object): Promise<string> => network.post('/v1/messages?beta=true', request).then((response) => response.text());
  const claude = (messages: readonly object[]) => ({
    model,
    max_tokens: 40,
    temperature: 0,
    system: [{ type: 'text', text: 'You are Claude Code.', cache_control: { type: 'ephemeral' } }],
    thinking: { type: 'disabled' },
    messages,
  });

  it('Claude Code pastes one, and reads one with its tool', async () => {
    const pasted = [{ role: 'user', content: [{ ...imageBlock(circle), cache_control: { type: 'ephemeral' } }, textPart] }];
    expect(await text(claude(pasted))).toContain('orange circle');
    const read = [
      { role: 'user', content: [{ type: 'text', text: 'Read shot.png.' }] },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'Read', input: { file_path: '/shot.png' } }] },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: [imageBlock(circle)], is_error: false }, textPart],
      },
    ];
    const tools = [
      { name: 'Read', description: 'Reads a file', input_schema: { type: 'object', properties: { file_path: { type: 'string' } } } },
    ];
    // The demo model was not trained on tools, so the test checks only that the image reaches the model.
    const answer = JSON.parse(await text({ ...claude(read), tools })) as { type: string; usage: { input_tokens: number } };
    expect(answer.type).toBe('message');
    expect(answer.usage.input_tokens).toBeGreaterThan(64);
  });

  it('Codex attaches one, and views one with its tool', async () => {
    const user = (content: readonly object[]) => ({ type: 'message', id: 'msg_1', role: 'user', content });
    const question = { type: 'input_text', text: QUESTION };
    const ask = async (input: readonly object[]) => {
      const response = await network.post('/v1/responses', { model, temperature: 0, max_output_tokens: 40, store: false, input });
      return (await response.json()) as { output: readonly { content: readonly { text: string }[] }[]; usage: { input_tokens: number } };
    };
    const attached = await ask([user([inputImage(circle), question])]);
    expect(attached.output[0]?.content[0]?.text).toMatch(CIRCLE);
    const viewed = await ask([
      user([{ type: 'input_text', text: 'View shot.png.' }]),
      { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'view_image', arguments: '{"path":"shot.png"}', status: 'completed' },
      { type: 'function_call_output', call_id: 'call_1', output: [inputImage(circle)] },
      user([question]),
    ]);
    expect(viewed.usage.input_tokens).toBeGreaterThan(64);
  });
});
