/** Code snippets for the quick start: features of the API (`featureSnippets`), and settings of coding agents (`programSnippets`). */
import { QUESTION, type Snippet, type SnippetFacts } from './snippets.js';

const literal = JSON.stringify;

/** First lines of a script with the OpenAI SDK. */
function openAiClient({ base, key }: SnippetFacts): string {
  return `import OpenAI from 'openai';

const client = new OpenAI({ baseURL: '${base}/v1', apiKey: '${key}' });
`;
}

export function featureSnippets(facts: SnippetFacts): readonly [Snippet, ...Snippet[]] {
  const { base, key, model } = facts;
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: QUESTION }] });
  return [
    {
      id: 'streaming',
      title: 'Streaming',
      before: 'npm install openai',
      code: `${openAiClient(facts)}
const stream = await client.chat.completions.create({
  model: ${literal(model)},
  messages: [{ role: 'user', content: ${literal(QUESTION)} }],
  stream: true,
});
for await (const chunk of stream) {
  process.stdout.write(chunk.choices[0]?.delta.content ?? '');
}`,
    },
    {
      id: 'tools',
      title: 'Tools',
      before: 'npm install openai',
      code: `${openAiClient(facts)}
const answer = await client.chat.completions.create({
  model: ${literal(model)},
  messages: [{ role: 'user', content: 'What is the weather in Paris?' }],
  tools: [
    {
      type: 'function',
      function: {
        name: 'get_weather',
        description: 'Current weather in a city',
        parameters: {
          type: 'object',
          properties: { city: { type: 'string' } },
          required: ['city'],
        },
      },
    },
  ],
  tool_choice: 'required',
});
// Run the function, then send its result in a message with the role "tool".
for (const call of answer.choices[0].message.tool_calls) {
  console.log(call.function.name, call.function.arguments);
}`,
    },
    {
      id: 'environment',
      title: 'Key from the environment',
      before:
        'The OpenAI and Anthropic SDKs and many programs read these variables. Your code then contains no key: new OpenAI() is enough.',
      code: `export OPENAI_BASE_URL=${base}/v1
export OPENAI_API_KEY=${key}
export ANTHROPIC_BASE_URL=${base}
export ANTHROPIC_API_KEY=${key}
export ANTHROPIC_MODEL=${model}`,
    },
    {
      id: 'verify',
      title: 'Verify this answer',
      before:
        'Sends the request, then checks the signature over the exact bytes of the response, the receipt, and the evidence of the machine.',
      code: `npx --package @inference/verifier inference-verify response \\
  --base-url ${base} \\
  --key ${key} \\
  --data '${body.replaceAll("'", "'\\''")}'`,
    },
  ];
}

export function programSnippets({ base, key, model }: SnippetFacts): readonly [Snippet, ...Snippet[]] {
  return [
    {
      id: 'claude-code',
      title: 'Claude Code',
      before: null,
      code: `ANTHROPIC_BASE_URL=${base} \\
ANTHROPIC_API_KEY=${key} \\
ANTHROPIC_MODEL=${model} \\
CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 \\
claude`,
    },
    {
      id: 'codex',
      title: 'Codex',
      before: 'Add this to ~/.codex/config.toml.',
      code: `model = ${literal(model)}
model_provider = "network"

[model_providers.network]
name = "network"
base_url = "${base}/v1"
env_key = "NETWORK_API_KEY"
wire_api = "responses"`,
      run: `NETWORK_API_KEY=${key} codex`,
    },
    {
      id: 'opencode',
      title: 'opencode',
      before: 'Save this as opencode.json. Set context and output to the limits of the model.',
      code: JSON.stringify(
        {
          provider: {
            network: {
              npm: '@ai-sdk/openai-compatible',
              options: { baseURL: `${base}/v1`, apiKey: '{env:NETWORK_API_KEY}' },
              models: { [model]: { limit: { context: 131_072, output: 8192 } } },
            },
          },
        },
        null,
        2,
      ),
      run: `NETWORK_API_KEY=${key} opencode run -m network/${model} "Say hello."`,
    },
    {
      id: 'vercel-ai',
      title: 'Vercel AI SDK',
      before: 'npm install ai @ai-sdk/openai',
      code: `import { createOpenAI } from '@ai-sdk/openai';
import { generateText } from 'ai';

const network = createOpenAI({ baseURL: '${base}/v1', apiKey: '${key}' });

const answer = await generateText({
  model: network.chat(${literal(model)}),
  prompt: ${literal(QUESTION)},
});
console.log(answer.text);`,
    },
  ];
}
