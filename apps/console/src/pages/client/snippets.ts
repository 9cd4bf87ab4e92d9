/** Code snippets with example requests in curl and the OpenAI and Anthropic SDKs. */

export interface SnippetFacts {
  /** Origin of the API, without `/v1`. */
  readonly base: string;
  /** A key that was just created, or {@link KEY_PLACEHOLDER}. */
  readonly key: string;
  readonly model: string;
}

export interface Snippet {
  readonly id: string;
  readonly title: string;
  /** Installation command or text above the code, if any. */
  readonly before: string | null;
  readonly code: string;
  /** Command that starts the program, if `code` is a settings file. */
  readonly run?: string;
}

export const KEY_PLACEHOLDER = 'YOUR_API_KEY';
export const QUESTION = 'What is the capital of France?';

export function curlSnippet({ base, key, model }: SnippetFacts): Snippet {
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: QUESTION }] });
  return {
    id: 'curl',
    title: 'curl',
    before: null,
    code: `curl ${base}/v1/chat/completions \\
  -H "Authorization: Bearer ${key}" \\
  -H "Content-Type: application/json" \\
  -d '${body.replaceAll("'", "'\\''")}'`,
  };
}

export function textSnippets({ base, key, model }: SnippetFacts): readonly [Snippet, ...Snippet[]] {
  const literal = JSON.stringify;
  return [
    curlSnippet({ base, key, model }),
    {
      id: 'openai-js',
      title: 'OpenAI, JavaScript',
      before: 'npm install openai',
      code: `import OpenAI from 'openai';

const client = new OpenAI({ baseURL: '${base}/v1', apiKey: '${key}' });

const answer = await client.chat.completions.create({
  model: ${literal(model)},
  messages: [{ role: 'user', content: ${literal(QUESTION)} }],
});
console.log(answer.choices[0].message.content);`,
    },
    {
      id: 'openai-python',
      title: 'OpenAI, Python',
      before: 'pip install openai',
      code: `from openai import OpenAI

client = OpenAI(base_url="${base}/v1", api_key="${key}")

answer = client.chat.completions.create(
    model=${literal(model)},
    messages=[{"role": "user", "content": ${literal(QUESTION)}}],
)
print(answer.choices[0].message.content)`,
    },
    {
      id: 'anthropic-js',
      title: 'Anthropic, JavaScript',
      before: 'npm install @anthropic-ai/sdk',
      code: `import Anthropic from '@anthropic-ai/sdk';

const client = new Anthropic({ baseURL: '${base}', apiKey: '${key}' });

const answer = await client.messages.create({
  model: ${literal(model)},
  max_tokens: 512,
  messages: [{ role: 'user', content: ${literal(QUESTION)} }],
});
console.log(answer.content);`,
    },
    {
      id: 'anthropic-python',
      title: 'Anthropic, Python',
      before: 'pip install anthropic',
      code: `from anthropic import Anthropic

client = Anthropic(base_url="${base}", api_key="${key}")

answer = client.messages.create(
    model=${literal(model)},
    max_tokens=512,
    messages=[{"role": "user", "content": ${literal(QUESTION)}}],
)
print(answer.content)`,
    },
  ];
}

export function imageSnippet({ base, key, model }: SnippetFacts): Snippet {
  const body = JSON.stringify({ model, prompt: 'a red square on a blue background' });
  return {
    id: 'image',
    title: 'An image',
    before: null,
    code: `curl ${base}/v1/images/generations \\
  -H "Authorization: Bearer ${key}" \\
  -H "Content-Type: application/json" \\
  -d '${body}'`,
  };
}

/** Returns an example request about an image. With an image model, the code first generates the image; otherwise it reads a file. */
export function visionSnippet({ base, key, model }: SnippetFacts, imageModel: string | null): Snippet {
  const literal = JSON.stringify;
  const image =
    imageModel === null
      ? `const image = readFileSync('picture.png', 'base64');`
      : `const drawing = await client.images.generate({
  model: ${literal(imageModel)},
  prompt: 'two orange triangles on a purple background',
  response_format: 'b64_json',
});
const image = drawing.data[0].b64_json;`;
  return {
    id: 'vision',
    title: 'About an image',
    before: 'npm install openai',
    code: `${imageModel === null ? "import { readFileSync } from 'node:fs';\n" : ''}import OpenAI from 'openai';

const client = new OpenAI({ baseURL: '${base}/v1', apiKey: '${key}' });

${image}
const answer = await client.chat.completions.create({
  model: ${literal(model)},
  messages: [
    {
      role: 'user',
      content: [
        { type: 'image_url', image_url: { url: \`data:image/png;base64,\${image}\` } },
        { type: 'text', text: 'What is on it?' },
      ],
    },
  ],
});
console.log(answer.choices[0].message.content);`,
  };
}
