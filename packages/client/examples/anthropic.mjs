/**
 * Messages with the Anthropic SDK. INFERENCE_BASE_URL, INFERENCE_API_KEY and INFERENCE_MODEL name coordinator, key and model;
 * ALLOW_SIMULATED=1 accepts simulated machines, as in a demo network.
 */
import Anthropic from '@anthropic-ai/sdk';
import { createVerifiedFetch, verdictOf } from '@inference/client';

const baseURL = process.env.INFERENCE_BASE_URL;
const policy = process.env.ALLOW_SIMULATED === '1' ? { allowSimulated: true } : {};
const fetch = createVerifiedFetch({ baseURL, policy });
const client = new Anthropic({ baseURL, apiKey: process.env.INFERENCE_API_KEY, fetch });

const { data: message, response } = await client.messages
  .create({ model: process.env.INFERENCE_MODEL, max_tokens: 64, messages: [{ role: 'user', content: 'Say hello.' }] })
  .withResponse();
console.log(message.content[0].text);

const verdict = verdictOf(response);
console.log(`${verdict.state}: ${verdict.provider.evidence} machine ${verdict.provider.providerId}`);
