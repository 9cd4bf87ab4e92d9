/** `requestCode`: renders a request of the playground as a curl command, and as code for the OpenAI libraries in Python and JavaScript. */

export interface RequestCode {
  readonly id: 'curl' | 'python' | 'javascript';
  readonly title: string;
  readonly code: string;
}

interface CodeRequest {
  readonly endpoint: 'chat' | 'images';
  /** Origin of the API, without `/v1`. */
  readonly base: string;
  /** Body of the playground's request. Chat: `stream` is true. Images: `response_format` is `url`. */
  readonly body: string;
}

/** Environment variable from which the rendered code reads the API key. */
export const KEY_VARIABLE = 'NETWORK_API_KEY';

const PATHS = { chat: '/v1/chat/completions', images: '/v1/images/generations' } as const;

export function requestCode({ endpoint, base, body }: CodeRequest): readonly [RequestCode, ...RequestCode[]] {
  const members = Object.entries(JSON.parse(body) as Readonly<Record<string, unknown>>);
  const files = imageFilesOf(body);
  return [
    { id: 'curl', title: 'curl', code: curl(base + PATHS[endpoint], Object.fromEntries(members), files, endpoint === 'chat') },
    { id: 'python', title: 'Python', code: endpoint === 'chat' ? pythonChat(base, members, files) : pythonImages(base, members) },
    {
      id: 'javascript',
      title: 'JavaScript',
      code: endpoint === 'chat' ? javascriptChat(base, members, files) : javascriptImages(base, members),
    },
  ];
}

/** File names of images, by data URI. */
type ImageFiles = ReadonlyMap<string, string>;

/** Assigns a file name to each image. The rendered code reads the files: inline base64 data would hide the rest. */
export function imageFilesOf(body: string): ImageFiles {
  const dataUris = new Set(body.match(/data:image\/[a-z]+;base64,[A-Za-z0-9+/=]+/g));
  return new Map([...dataUris].map((dataUri, index) => [dataUri, `image-${index + 1}.${extensionOf(dataUri)}`]));
}

/** The playground encodes attachments as JPEG or PNG only. */
function extensionOf(dataUri: string): string {
  return dataUri.startsWith('data:image/jpeg') ? 'jpg' : 'png';
}

/** Start of a data URI, up to the base64 data. */
function dataPrefix(dataUri: string): string {
  return dataUri.slice(0, dataUri.indexOf(',') + 1);
}

type Members = readonly (readonly [name: string, value: unknown])[];

function curl(url: string, body: unknown, files: ImageFiles, streams: boolean): string {
  const json = JSON.stringify(body, null, 2);
  return `curl ${streams ? '--no-buffer ' : ''}${url} \\
  -H "Authorization: Bearer $${KEY_VARIABLE}" \\
  -H "Content-Type: application/json" \\
  ${files.size === 0 ? `-d '${json.replaceAll("'", "'\\''")}'` : curlHereDocument(json, files)}`;
}

/** Images exceed the maximum length of a command line argument, so curl reads the body from standard input. */
function curlHereDocument(json: string, files: ImageFiles): string {
  let text = json.replace(/[\\$`]/g, '\\$&');
  for (const [dataUri, file] of files) text = text.replaceAll(dataUri, `${dataPrefix(dataUri)}$(base64 < ${file} | tr -d '\\n')`);
  return `-d @- <<BODY\n${text}\nBODY`;
}

const pythonClient = (base: string, hasFiles = false): string => `# pip install openai
${hasFiles ? 'import base64\n' : ''}import os
from openai import OpenAI

client = OpenAI(base_url="${base}/v1", api_key=os.environ["${KEY_VARIABLE}"])
`;

function pythonChat(base: string, members: Members, files: ImageFiles): string {
  return `${pythonClient(base, files.size > 0)}
stream = client.chat.completions.create(
${pythonArguments(members, files)}
)
for chunk in stream:
    if chunk.choices and chunk.choices[0].delta.content:
        print(chunk.choices[0].delta.content, end="", flush=True)`;
}

/** Parameters that `images.generate` of the Python library knows. Others must be members of `extra_body`. */
const PYTHON_IMAGE_PARAMETERS = new Set(['model', 'prompt', 'n', 'size', 'response_format']);

function pythonImages(base: string, members: Members): string {
  const direct = members.filter(([name]) => PYTHON_IMAGE_PARAMETERS.has(name));
  const extra = members.filter(([name]) => !PYTHON_IMAGE_PARAMETERS.has(name));
  const all: Members = extra.length === 0 ? direct : [...direct, ['extra_body', Object.fromEntries(extra)]];
  return `${pythonClient(base)}
result = client.images.generate(
${pythonArguments(all)}
)
for image in result.data:
    print(image.url)`;
}

function pythonArguments(members: Members, files: ImageFiles = new Map()): string {
  return members.map(([name, value]) => `    ${name}=${renderLiteral(value, { ...PYTHON, files }, '    ')},`).join('\n');
}

const javascriptClient = (base: string, hasFiles = false): string => `// npm install openai
${hasFiles ? "import { readFileSync } from 'node:fs';\n" : ''}import OpenAI from 'openai';

const client = new OpenAI({ baseURL: '${base}/v1', apiKey: process.env.${KEY_VARIABLE} });
`;

function javascriptChat(base: string, members: Members, files: ImageFiles): string {
  return `${javascriptClient(base, files.size > 0)}
const stream = await client.chat.completions.create(${renderLiteral(Object.fromEntries(members), { ...JAVASCRIPT, files }, '')});
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? '');`;
}

function javascriptImages(base: string, members: Members): string {
  return `${javascriptClient(base)}
const result = await client.images.generate(${renderLiteral(Object.fromEntries(members), JAVASCRIPT, '')});
for (const image of result.data) console.log(image.url);`;
}

interface Language {
  readonly indent: string;
  readonly constants: { readonly true: string; readonly false: string; readonly null: string };
  readonly key: (name: string) => string;
  /** Space inside the brackets of a one-line object. */
  readonly pad: string;
  /** Expression for a data URI with the content of a file. `prefix`: start of the URI, up to the base64 data. */
  readonly image: (prefix: string, file: string) => string;
  readonly files?: ImageFiles;
}

const PYTHON: Language = {
  indent: '    ',
  constants: { true: 'True', false: 'False', null: 'None' },
  key: (name) => JSON.stringify(name),
  pad: '',
  image: (prefix, file) => `"${prefix}" + base64.b64encode(open("${file}", "rb").read()).decode()`,
};

const JAVASCRIPT: Language = {
  indent: '  ',
  constants: { true: 'true', false: 'false', null: 'null' },
  key: (name) => (/^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name)),
  pad: ' ',
  image: (prefix, file) => `\`${prefix}\${readFileSync('${file}', 'base64')}\``,
};

const MAX_LINE = 80;

/** Renders a JSON value as source code. JSON strings are valid literals in both languages. `indentation`: that of the first line. */
function renderLiteral(value: unknown, language: Language, indentation: string): string {
  if (value === null || typeof value === 'boolean') return language.constants[`${value}`];
  const file = typeof value === 'string' ? language.files?.get(value) : undefined;
  if (typeof value === 'string' && file !== undefined) return language.image(dataPrefix(value), file);
  if (typeof value !== 'object') return JSON.stringify(value);
  const isList = Array.isArray(value);
  const innerIndentation = indentation + language.indent;
  const parts = isList
    ? value.map((item) => renderLiteral(item, language, innerIndentation))
    : Object.entries(value).map(([name, item]) => `${language.key(name)}: ${renderLiteral(item, language, innerIndentation)}`);
  const [start, end] = isList ? ['[', ']'] : ['{', '}'];
  const pad = isList || parts.length === 0 ? '' : language.pad;
  const line = start + pad + parts.join(', ') + pad + end;
  // The outermost object always has one member per line.
  const fits = line.length <= MAX_LINE && !line.includes('\n') && indentation !== '';
  return fits ? line : `${start}\n${parts.map((part) => `${innerIndentation}${part},\n`).join('')}${indentation}${end}`;
}
