import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { closeServer, listenLocally } from '../../../../test/support/local-server.js';
import { runCommand } from '../../../../test/support/run-command.js';
import { chatBody } from '../../src/pages/playground/chat/conversation.js';
import { imageFilesOf, requestCode } from '../../src/pages/playground/code/request-code.js';
import { imageFileName } from '../../src/pages/playground/images/image-file-name.js';
import { imageBody } from '../../src/pages/playground/requests/image-request.js';

const TEXT = `It's "quoted", costs $HOME \\ and \`ls\`.\nNew line, ü€😀, <b>`;
const CHAT = chatBody({
  model: 'org/model',
  system: 'Be brief.',
  turns: [{ id: 'q', role: 'user', text: TEXT }],
  column: 0,
  parameters: { temperature: 0, stop: ['END', "'"] },
});
const PNG = Buffer.from('\x89PNG\r\n\x1a\n, not the rest of one, but longer than a line of base64 with 76 characters');
const JPEG = Buffer.from([0xff, 0xd8, 0xff]);
const QUESTION_WITH_IMAGES = chatBody({
  model: 'org/model',
  system: '',
  turns: [
    {
      id: 'q',
      role: 'user',
      text: TEXT,
      images: [
        { name: 'a', dataUri: `data:image/png;base64,${PNG.toString('base64')}` },
        { name: 'b', dataUri: `data:image/jpeg;base64,${JPEG.toString('base64')}` },
      ],
    },
  ],
  column: 0,
  parameters: {},
});
const IMAGE = imageBody({ model: 'org/model', prompt: TEXT, n: 1, size: '128x128', seed: 7 });

describe('the code of a request', () => {
  let base: string;
  const seen: { path: string; key: string; body: unknown }[] = [];
  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8');
    request.on('data', (chunk: string) => {
      text += chunk;
    });
    request.on('end', () => {
      seen.push({ path: request.url ?? '', key: request.headers.authorization ?? '', body: JSON.parse(text) });
      const isChat = request.url?.includes('chat') === true;
      response.writeHead(200, { 'content-type': isChat ? 'text/event-stream' : 'application/json' });
      response.end(isChat ? 'data: [DONE]\n\n' : '{"data":[{"url":"http://x.example/a.png"}]}');
    });
  });
  beforeAll(async () => {
    base = await listenLocally(server);
  });
  afterAll(() => closeServer(server));

  const folder = mkdtempSync(join(tmpdir(), 'playground-code-'));
  writeFileSync(join(folder, 'image-1.png'), PNG);
  writeFileSync(join(folder, 'image-2.jpg'), JPEG);
  afterAll(() => rmSync(folder, { recursive: true }));

  it.each([
    ['chat', '/v1/chat/completions', QUESTION_WITH_IMAGES],
    ['images', '/v1/images/generations', IMAGE],
  ] as const)('sends the body of the playground: %s', async (endpoint, path, body) => {
    const code = Object.fromEntries(requestCode({ endpoint, base, body }).map((one) => [one.id, one.code]));
    const env = { ...process.env, NETWORK_API_KEY: 'service-x', IMAGES: folder };
    const inFolder = 'cd "$IMAGES"\n';
    const fromFolder = 'process.chdir(process.env.IMAGES);\n';
    const [curl, script] = await Promise.all([
      runCommand('bash', ['-c', inFolder + (code.curl ?? '')], { env }),
      runCommand(process.execPath, ['--input-type=module', '-e', fromFolder + (code.javascript ?? '')], { env }),
    ]);
    expect([curl.code, script.code], curl.output + script.output).toEqual([0, 0]);
    const expected = { path, key: 'Bearer service-x', body: JSON.parse(body) as unknown };
    expect(seen.splice(0)).toEqual([expected, expected]);
  });

  it('reads images from files, in every language', () => {
    const code = requestCode({ endpoint: 'chat', base, body: QUESTION_WITH_IMAGES });
    expect([...imageFilesOf(QUESTION_WITH_IMAGES).values()]).toEqual(['image-1.png', 'image-2.jpg']);
    for (const one of code) expect(one.code).not.toContain(PNG.toString('base64'));
    expect(code[1]?.code).toContain('"data:image/jpeg;base64," + base64.b64encode(open("image-2.jpg", "rb").read()).decode()');
  });

  it('passes parameters that the Python library lacks as extra_body', () => {
    const [, python] = requestCode({ endpoint: 'images', base, body: IMAGE });
    expect(python?.code).toContain('    size="128x128",\n    response_format="url",\n    extra_body={"seed": 7},\n)');
    const [, chat] = requestCode({ endpoint: 'chat', base, body: CHAT });
    expect(chat?.code).toContain('    stream=True,\n    stream_options={"include_usage": True},\n)');
  });
});

it('the file of an image is named after its prompt', () => {
  expect(imageFileName({ prompt: 'A red circle!', seed: 7 }, 'image/png', 2)).toBe('a-red-circle-seed-7-2.png');
  expect(imageFileName({ prompt: '../../etc', seed: null }, 'image/jpeg', null)).toBe('etc.jpg');
  expect(imageFileName({ prompt: '…', seed: null }, 'image/webp', null)).toBe('image.webp');
  expect(imageFileName({ prompt: 'word '.repeat(40), seed: null }, 'image/png', null)).toBe(`${'word-'.repeat(8).slice(0, -1)}.png`);
});
