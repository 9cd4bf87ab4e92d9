import { createServer } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { closeServer, listenLocally } from '../../../../test/support/local-server.js';
import { runCommand } from '../../../../test/support/run-command.js';
import { chatBody } from '../../src/pages/playground/chat/conversation.js';
import { requestCode } from '../../src/pages/playground/code/request-code.js';
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

  it.each([
    ['chat', '/v1/chat/completions', CHAT],
    ['images', '/v1/images/generations', IMAGE],
  ] as const)('sends the body of the playground: %s', async (endpoint, path, body) => {
    const code = Object.fromEntries(requestCode({ endpoint, base, body }).map((one) => [one.id, one.code]));
    const env = { ...process.env, NETWORK_API_KEY: 'service-x' };
    const [curl, script] = await Promise.all([
      runCommand('bash', ['-c', code.curl ?? ''], { env }),
      runCommand(process.execPath, ['--input-type=module', '-e', code.javascript ?? ''], { env }),
    ]);
    expect([curl.code, script.code], curl.output + script.output).toEqual([0, 0]);
    const expected = { path, key: 'Bearer service-x', body: JSON.parse(body) as unknown };
    expect(seen.splice(0)).toEqual([expected, expected]);
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
