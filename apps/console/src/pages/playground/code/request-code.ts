/** A request of the playground as code: curl, and the OpenAI libraries for Python and JavaScript. */

export interface RequestCode {
  readonly id: 'curl' | 'python' | 'javascript';
  readonly title: string;
  readonly code: string;
}

interface CodeRequest {
  readonly endpoint: 'chat' | 'images';
  /** Origin of the API, without `/v1`. */
  readonly base: string;
  /** Body as the playground sends it. */
  readonly body: string;
}

/** Environment variable that the code reads the API key from. */
export const KEY_VARIABLE = 'NETWORK_API_KEY';

const PATHS = { chat: '/v1/chat/completions', images: '/v1/images/generations' } as const;

export function requestCode({ endpoint, base, body }: CodeRequest): readonly [RequestCode, ...RequestCode[]] {
  const members = Object.entries(JSON.parse(body) as Readonly<Record<string, unknown>>);
  return [
    { id: 'curl', title: 'curl', code: curl(base + PATHS[endpoint], Object.fromEntries(members), endpoint === 'chat') },
    { id: 'python', title: 'Python', code: endpoint === 'chat' ? pythonChat(base, members) : pythonImages(base, members) },
    { id: 'javascript', title: 'JavaScript', code: endpoint === 'chat' ? scriptChat(base, members) : scriptImages(base, members) },
  ];
}

type Members = readonly (readonly [name: string, value: unknown])[];

function curl(url: string, body: unknown, streams: boolean): string {
  return `curl ${streams ? '--no-buffer ' : ''}${url} \\
  -H "Authorization: Bearer $${KEY_VARIABLE}" \\
  -H "Content-Type: application/json" \\
  -d '${JSON.stringify(body, null, 2).replaceAll("'", "'\\''")}'`;
}

const pythonClient = (base: string): string => `# pip install openai
import os
from openai import OpenAI

client = OpenAI(base_url="${base}/v1", api_key=os.environ["${KEY_VARIABLE}"])
`;

function pythonChat(base: string, members: Members): string {
  return `${pythonClient(base)}
stream = client.chat.completions.create(
${pythonArguments(members)}
)
for chunk in stream:
    if chunk.choices and chunk.choices[0].delta.content:
        print(chunk.choices[0].delta.content, end="", flush=True)`;
}

/** Parameters of `images.generate` in the Python library. Others are members of `extra_body`. */
const PYTHON_IMAGE_PARAMETERS = new Set(['model', 'prompt', 'n', 'size', 'response_format']);

function pythonImages(base: string, members: Members): string {
  const own = members.filter(([name]) => PYTHON_IMAGE_PARAMETERS.has(name));
  const extra = members.filter(([name]) => !PYTHON_IMAGE_PARAMETERS.has(name));
  const all: Members = extra.length === 0 ? own : [...own, ['extra_body', Object.fromEntries(extra)]];
  return `${pythonClient(base)}
result = client.images.generate(
${pythonArguments(all)}
)
for image in result.data:
    print(image.url)`;
}

function pythonArguments(members: Members): string {
  return members.map(([name, value]) => `    ${name}=${literal(value, PYTHON, '    ')},`).join('\n');
}

const scriptClient = (base: string): string => `// npm install openai
import OpenAI from 'openai';

const client = new OpenAI({ baseURL: '${base}/v1', apiKey: process.env.${KEY_VARIABLE} });
`;

function scriptChat(base: string, members: Members): string {
  return `${scriptClient(base)}
const stream = await client.chat.completions.create(${literal(Object.fromEntries(members), SCRIPT, '')});
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? '');`;
}

function scriptImages(base: string, members: Members): string {
  return `${scriptClient(base)}
const result = await client.images.generate(${literal(Object.fromEntries(members), SCRIPT, '')});
for (const image of result.data) console.log(image.url);`;
}

interface Language {
  readonly indent: string;
  readonly constants: { readonly true: string; readonly false: string; readonly null: string };
  readonly key: (name: string) => string;
  /** Padding of an object on one line. */
  readonly pad: string;
}

const PYTHON: Language = {
  indent: '    ',
  constants: { true: 'True', false: 'False', null: 'None' },
  key: (name) => JSON.stringify(name),
  pad: '',
};

const SCRIPT: Language = {
  indent: '  ',
  constants: { true: 'true', false: 'false', null: 'null' },
  key: (name) => (/^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name)),
  pad: ' ',
};

const MAX_LINE = 80;

/** JSON value as a literal. A JSON string is one in both languages, too. `at`: indentation of its first line. */
function literal(value: unknown, language: Language, at: string): string {
  if (value === null || typeof value === 'boolean') return language.constants[`${value}`];
  if (typeof value !== 'object') return JSON.stringify(value);
  const isList = Array.isArray(value);
  const inner = at + language.indent;
  const parts = isList
    ? value.map((item) => literal(item, language, inner))
    : Object.entries(value).map(([name, item]) => `${language.key(name)}: ${literal(item, language, inner)}`);
  const [start, end] = isList ? ['[', ']'] : ['{', '}'];
  const pad = isList || parts.length === 0 ? '' : language.pad;
  const line = start + pad + parts.join(', ') + pad + end;
  // A request reads better with a member per line.
  const fits = line.length <= MAX_LINE && !line.includes('\n') && at !== '';
  return fits ? line : `${start}\n${parts.map((part) => `${inner}${part},\n`).join('')}${at}${end}`;
}
