/** Runs the commands of README.md and docs/getting-started.md against a network started by `npm start`. */
import { spawn } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Demo, NpmStart, ROOT } from './support/npm-start.js';
import { runCommand } from './support/run-command.js';
import { temporaryDirectory } from './support/temporary-directory.js';

const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
const guide = readFileSync(join(ROOT, 'docs', 'getting-started.md'), 'utf8');
const scripts = (JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: Record<string, string> }).scripts;

let directory: string;
let start: NpmStart;
let demo: Demo;

beforeAll(async () => {
  directory = temporaryDirectory('inference-readme');
  start = new NpmStart(directory);
  demo = await start.ready();
});
afterAll(() => start?.end());

/** Replaces the default data directory, base URL and key of a code block with the values of this test's network. */
function forThisNetwork(block: string): string {
  return block.replaceAll('./.data', directory).replaceAll('http://127.0.0.1:8080', demo.base_url).replaceAll('service-…', demo.api_key);
}

/** Code block after a bold lead of the README; `number` counts from 0. */
function readmeCode(lead: string, number = 0): string {
  const blocks = [...(readme.split(`**${lead}**`)[1] ?? '').matchAll(/```sh\n([\s\S]*?)```/g)];
  const block = blocks[number]?.[1];
  if (block === undefined) throw new Error(`README: no sh code after "${lead}"`);
  return forThisNetwork(block);
}

/** Code block of a language under a heading of the guide. */
function code(heading: string, language: string, number = 0): string {
  const section = guide.split(/^## /m).find((text) => text.startsWith(heading)) ?? '';
  const blocks = [...section.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g'))];
  const block = blocks[number]?.[1];
  if (block === undefined) throw new Error(`getting-started.md: no ${language} code ${number} under "${heading}"`);
  return forThisNetwork(block);
}

const run = (command: string, args: readonly string[]) =>
  runCommand(command, args, { cwd: ROOT, env: { ...process.env, DATA_DIR: directory } });

describe('README', () => {
  it('says on its first 30 lines how to start, test, request and verify', () => {
    const firstScreen = readme.split('\n').slice(0, 30).join('\n');
    expect(readmeCode('Start a whole network').trim()).toBe('npm ci && npm start');
    expect(firstScreen).toContain('**Run the tests**: `npm ci && npm test`');
    for (const command of ['/v1/chat/completions', 'scripts/verify-response.sh']) expect(firstScreen).toContain(command);
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining(['start', 'test', 'bench', 'format']));
  });

  it('sends a request', async () => {
    const { output } = await run('bash', ['-c', readmeCode('Send a request')]);
    expect(output).toMatch(/"content":"The capital of France is Paris\."/);
  });

  it('verifies a response, and shows that a changed byte fails', async () => {
    await expectVerifications(readmeCode('Verify a response').trim().split('\n'), 2);
  });
});

describe('the README in end-to-end mode', () => {
  it('gets a verified response with the OpenAI SDK through the proxy', async () => {
    const variables = readmeCode('Send a request').split('curl')[0] as string;
    // The default port may be taken on this machine.
    const started = `${variables}${readmeCode('Send a request end-to-end encrypted').trim()} --listen 127.0.0.1:0`;
    const env = { ...process.env, XDG_STATE_HOME: directory };
    const proxy = spawn('bash', ['-c', started], { cwd: ROOT, env, detached: true });
    const exited = new Promise<void>((resolve) => proxy.once('close', () => resolve()));
    let output = '';
    for (const stream of [proxy.stdout, proxy.stderr]) stream.on('data', (bytes: Buffer) => (output += bytes.toString()));
    try {
      await expect.poll(() => output).toContain('listening on http://127.0.0.1:');
      const address = /listening on (\S+) for/.exec(output)?.[1] as string;
      const request = readmeCode('Send a request end-to-end encrypted', 1).replaceAll('http://127.0.0.1:8086', address);
      expect((await run('bash', ['-c', variables + request])).output).toContain('Tokyo');
      await expect.poll(() => output).toMatch(/POST \/v1\/chat\/completions VERIFIED /);
    } finally {
      // The group: the shell and npx start the program as their child.
      process.kill(-(proxy.pid as number), 'SIGTERM');
      await exited;
    }
  });
});

describe('getting started', () => {
  it('generates an image that its URL serves', async () => {
    const { output } = await run('bash', ['-c', code('Generate an image', 'sh')]);
    const address = /"url":"([^"]+)"/.exec(output)?.[1] ?? '';
    const image = await fetch(address);
    expect([image.status, image.headers.get('content-type')]).toEqual([200, 'image/png']);
  });

  it('draws an image, asks what is on it, and verifies both responses', async () => {
    expect(demo.vision_model).toBe('viso-demo');
    const { output } = await run('bash', ['-c', code('Ask what is on an image', 'sh')]);
    expect(output.match(/^verified/gm)).toHaveLength(2);
    expect(output).toMatch(/Two orange triangles on a purple (?:back)?ground\./);
  });

  it.each([
    ['OpenAI', 0, '15'],
    ['Anthropic', 1, 'Tokyo'],
  ])('points the %s SDK at the network', async (name, number, answer) => {
    const script = join(ROOT, 'test', `.readme-${name}-${process.pid}.mjs`);
    writeFileSync(script, code('Use an SDK', 'js', number));
    try {
      const { code: status, output } = await run(process.execPath, [script]);
      expect(output).toContain(answer);
      expect(status).toBe(0);
    } finally {
      rmSync(script);
    }
  });

  it('uses end-to-end mode', async () => {
    const script = join(ROOT, 'test', `.readme-end-to-end-${process.pid}.mjs`);
    writeFileSync(script, code('Use end-to-end mode', 'js'));
    try {
      expect((await run(process.execPath, [script])).output).toMatch(/15.* verified/);
    } finally {
      rmSync(script);
    }
  });

  it('verifies responses, and shows that a changed byte fails', async () => {
    await expectVerifications(code('Verify a response', 'sh').trim().split('\n'), 3);
  });

  it('verifies the network', async () => {
    const { code: status, output } = await run('bash', ['-c', code('Verify the network', 'sh')]);
    expect(output).toContain('no claim is contradicted by its evidence');
    expect(status).toBe(0);
    expect(Object.keys(scripts)).toContain('trust-demo');
  });

  it('reads balance, usage and prices', async () => {
    const variables = code('Generate an image', 'sh').split('curl')[0] as string;
    const lines = code('Check the costs', 'sh').trim().split('\n');
    const outputs = await Promise.all(lines.map(async (line) => (await run('bash', ['-c', variables + line])).output));
    expect(outputs[0]).toMatch(/"balance_micro_usd":\d{6,}/);
    expect(outputs[1]).toMatch(/"usage":\[\{"request_id"/);
    expect(outputs[2]).toContain('pico-demo');
    expect(Object.keys(scripts)).toContain('ledger-check');
  });
});

async function expectVerifications(lines: readonly string[], count: number): Promise<void> {
  expect(lines).toHaveLength(count);
  for (const line of lines) {
    const { code: status, output } = await run('bash', ['-c', line]);
    expect(output).toMatch(line.includes('--flip-byte') ? /FAILED/ : /^verified/m);
    expect(status).toBe(line.includes('--flip-byte') ? 1 : 0);
  }
}
