/**
 * Chat completions with the OpenAI SDK. INFERENCE_BASE_URL, INFERENCE_API_KEY and INFERENCE_MODEL name coordinator, key and model;
 * ALLOW_SIMULATED=1 accepts simulated machines, as in a demo network.
 */
import { createVerifiedFetch, verdictOf } from '@inference/client';
import OpenAI from 'openai';

const baseURL = `${process.env.INFERENCE_BASE_URL}/v1`;
const policy = process.env.ALLOW_SIMULATED === '1' ? { allowSimulated: true } : {};
const fetch = createVerifiedFetch({ baseURL, policy });
const client = new OpenAI({ baseURL, apiKey: process.env.INFERENCE_API_KEY, fetch });

const { data: stream, response } = await client.chat.completions
  .create({ model: process.env.INFERENCE_MODEL, messages: [{ role: 'user', content: 'Say hello.' }], stream: true })
  .withResponse();
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? '');

const verdict = verdictOf(response);
console.log(`\n${verdict.state}: ${verdict.provider.evidence} machine ${verdict.provider.providerId}`);
