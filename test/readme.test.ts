/** The README is kept true: what it tells a newcomer to type is typed here, against a network started as it says. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Demo, NpmStart, ROOT } from './support/npm-start.js';

const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
const scripts = (JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: Record<string, string> }).scripts;

let directory: string;
let start: NpmStart;
let demo: Demo;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'inference-readme-'));
  start = new NpmStart(directory);
  demo = await start.ready();
});
afterAll(async () => {
  await start?.end();
  rmSync(directory, { recursive: true, force: true });
});

/** Code of one language under a heading, with the default data directory and address replaced by this test's. */
function code(heading: string, language: string, number = 0): string {
  const section = readme.split(/^## /m).find((text) => text.startsWith(heading)) ?? '';
  const blocks = [...section.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g'))];
  const block = blocks[number]?.[1];
  if (block === undefined) throw new Error(`README: no ${language} code ${number} under "${heading}"`);
  return block.replaceAll('./.data', directory).replaceAll('http://127.0.0.1:8080', demo.base_url).replaceAll('service-…', demo.api_key);
}

function run(command: string, args: readonly string[]): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    execFile(command, args, { cwd: join(ROOT, 'test', '..'), env: { ...process.env, DATA_DIR: directory } }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), output: stdout + stderr });
    });
  });
}

describe('README', () => {
  it('names the two commands, and they exist', () => {
    expect(code('Start a whole network', 'sh').trim()).toBe('npm ci && npm start');
    expect(code('Run the tests', 'sh').trim()).toBe('npm ci && npm test');
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining(['start', 'test', 'bench', 'format']));
  });

  it('makes the first request', async () => {
    const { output } = await run('bash', ['-c', code('The first request', 'sh')]);
    expect(output).toMatch(/"content":"The capital of France is Paris\."/);
  });

  it('draws an image, which lies where the answer says', async () => {
    const { output } = await run('bash', ['-c', code('An image', 'sh')]);
    const address = /"url":"([^"]+)"/.exec(output)?.[1] ?? '';
    const image = await fetch(address);
    expect([image.status, image.headers.get('content-type')]).toEqual([200, 'image/png']);
  });

  it.each([
    ['OpenAI', 0, '15'],
    ['Anthropic', 1, 'Tokyo'],
  ])('points the %s SDK at the network', async (name, number, answer) => {
    const script = join(ROOT, 'test', `.readme-${name}-${process.pid}.mjs`);
    writeFileSync(script, code('Point an SDK at it', 'js', number));
    try {
      const { code: status, output } = await run(process.execPath, [script]);
      expect(output).toContain(answer);
      expect(status).toBe(0);
    } finally {
      rmSync(script);
    }
  });

  it('verifies answers, and shows that a changed byte fails', async () => {
    const lines = code('Verify an answer', 'sh').trim().split('\n');
    expect(lines).toHaveLength(3);
    for (const line of lines) {
      const { code: status, output } = await run('bash', ['-c', line]);
      expect(output).toMatch(line.includes('--flip-byte') ? /FAILED/ : /^verified/m);
      expect(status).toBe(line.includes('--flip-byte') ? 1 : 0);
    }
  });

  it('verifies the network', async () => {
    const { code: status, output } = await run('bash', ['-c', code('Verify the network', 'sh')]);
    expect(output).toContain('no claim is contradicted by its evidence');
    expect(status).toBe(0);
    expect(Object.keys(scripts)).toContain('trust-demo');
  });

  it('says what a request has cost', async () => {
    const variables = code('The first request', 'sh').split('curl')[0] as string;
    const lines = code('What a request costs', 'sh').trim().split('\n');
    const outputs = await Promise.all(lines.map(async (line) => (await run('bash', ['-c', variables + line])).output));
    expect(outputs[0]).toMatch(/"balance_micro_usd":\d{6,}/);
    expect(outputs[1]).toMatch(/"usage":\[\{"request_id"/);
    expect(outputs[2]).toContain('pico-demo');
    expect(Object.keys(scripts)).toContain('ledger-check');
  });
});
