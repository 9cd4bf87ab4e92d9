/** `modelSnippets`: example request to a model in curl, Python and JavaScript, for the endpoint of the model's type. */
import type { ServedModel } from '../../features/models/served-models.js';

export interface ModelSnippet {
  readonly id: 'curl' | 'python' | 'js';
  readonly title: string;
  readonly code: string;
}

const KEY_PLACEHOLDER = 'YOUR_API_KEY';

interface Call {
  readonly path: string;
  /** Members of the request besides `model`. */
  readonly members: Readonly<Record<string, unknown>>;
  /** Method of the OpenAI SDKs. */
  readonly method: string;
  /** Expression for the result in Python. */
  readonly python: string;
  /** Expression for the result in JavaScript. */
  readonly js: string;
}

function callOf({ model_type, sizes }: ServedModel['metadata']): Call {
  switch (model_type) {
    case 'text':
      return {
        path: '/v1/chat/completions',
        members: { messages: [{ role: 'user', content: 'What is the capital of France?' }] },
        method: 'chat.completions.create',
        python: 'answer.choices[0].message.content',
        js: 'answer.choices[0].message.content',
      };
    case 'embedding':
      return {
        path: '/v1/embeddings',
        members: { input: 'What is the capital of France?' },
        method: 'embeddings.create',
        python: 'answer.data[0].embedding',
        js: 'answer.data[0].embedding',
      };
    case 'image':
      return {
        path: '/v1/images/generations',
        members: { prompt: 'a red square on a blue background', ...(sizes?.[0] === undefined ? {} : { size: sizes[0] }) },
        method: 'images.generate',
        python: 'answer.data[0].url',
        js: 'answer.data[0].url',
      };
    default:
      return model_type satisfies never;
  }
}

/** `base`: origin of the API, without `/v1`. */
export function modelSnippets({ id, metadata }: Pick<ServedModel, 'id' | 'metadata'>, base: string): readonly ModelSnippet[] {
  const { path, members, method, python, js } = callOf(metadata);
  const literal = JSON.stringify;
  const all = Object.entries({ model: id, ...members });
  return [
    {
      id: 'curl',
      title: 'curl',
      code: `curl ${base}${path} \\
  -H "Authorization: Bearer ${KEY_PLACEHOLDER}" \\
  -H "Content-Type: application/json" \\
  -d '${literal(Object.fromEntries(all)).replaceAll("'", "'\\''")}'`,
    },
    {
      id: 'python',
      title: 'Python',
      code: `# pip install openai
from openai import OpenAI

client = OpenAI(base_url="${base}/v1", api_key="${KEY_PLACEHOLDER}")

answer = client.${method}(
${all.map(([name, value]) => `    ${name}=${literal(value)},`).join('\n')}
)
print(${python})`,
    },
    {
      id: 'js',
      title: 'JavaScript',
      code: `// npm install openai
import OpenAI from 'openai';

const client = new OpenAI({ baseURL: '${base}/v1', apiKey: '${KEY_PLACEHOLDER}' });

const answer = await client.${method}({
${all.map(([name, value]) => `  ${name}: ${literal(value)},`).join('\n')}
});
console.log(${js});`,
    },
  ];
}
