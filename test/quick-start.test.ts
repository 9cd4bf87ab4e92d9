/** Runs the snippets of the console's quick start against a network, as a reader would after copying them. */
import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse as parseToml } from 'smol-toml';
import { beforeAll, describe, expect, it } from 'vitest';
import { featureSnippets, programSnippets } from '../apps/console/src/pages/client/feature-snippets.js';
import { type Snippet, type SnippetFacts, textSnippets } from '../apps/console/src/pages/client/snippets.js';
import { requestCode } from '../apps/console/src/pages/playground/code/request-code.js';
import { ROOT } from './support/npm-start.js';
import { runCommand, runNode } from './support/run-command.js';
import { sharedNetwork } from './support/shared-network.js';
import { temporaryDirectory } from './support/temporary-directory.js';

let facts: SnippetFacts;

beforeAll(async () => {
  const { baseUrl, apiKey, model } = await sharedNetwork();
  facts = { base: baseUrl, key: apiKey, model };
});

function snippet(id: string): Snippet {
  const found = [...textSnippets(facts), ...featureSnippets(facts), ...programSnippets(facts)].find((one) => one.id === id);
  if (found === undefined) throw new Error(`the quick start has no snippet ${id}`);
  return found;
}

/** Adds temperature 0 to a snippet, because assertions depend on the text. */
function repeatable(code: string): string {
  return code.replace(/^( +)model: /m, '$1temperature: 0,\n$1model: ').replace('{"model":', '{"temperature":0,"model":');
}

/** Output of a script, run where its packages are installed. */
async function runScript(name: string, script: string): Promise<string> {
  const file = join(ROOT, 'test', `.quick-start-${name}-${process.pid}.mjs`);
  writeFileSync(file, script);
  try {
    const { code, stdout, output } = await runNode([file]);
    expect(code, output).toBe(0);
    return stdout;
  } finally {
    rmSync(file);
  }
}

describe('the quick start', () => {
  it.each(['openai-js', 'anthropic-js', 'streaming', 'vercel-ai'])('%s answers the question', async (id) => {
    expect(await runScript(id, repeatable(snippet(id).code))).toContain('Paris');
  });

  it('curl answers the question', async () => {
    expect((await runCommand('bash', ['-c', repeatable(snippet('curl').code)])).stdout).toContain('Paris');
  });

  it('the code of a playground request streams its answer', async () => {
    const { base, key, model } = facts;
    const messages = [{ role: 'user', content: 'What is the capital of France?' }];
    const body = JSON.stringify({ model, messages, temperature: 0, stream: true, stream_options: { include_usage: true } });
    const env = { ...process.env, NETWORK_API_KEY: key };
    for (const { id, code } of requestCode({ endpoint: 'chat', base, body })) {
      if (id === 'python') continue;
      const [command, args] = id === 'curl' ? ['bash', ['-c', code]] : [process.execPath, ['--input-type=module', '-e', code]];
      const { stdout, output } = await runCommand(command, args, { env, cwd: ROOT });
      // curl prints the events, whose chunks may split the word.
      const text = id === 'curl' ? [...stdout.matchAll(/"content":"([^"]*)"/g)].map(([, part]) => part).join('') : stdout;
      expect(text, output).toContain('Paris');
    }
  });

  it('tools calls the function with arguments of its schema', async () => {
    const [, args = ''] = /^get_weather (\{.*\})$/m.exec(await runScript('tools', repeatable(snippet('tools').code))) ?? [];
    expect(JSON.parse(args)).toEqual({ city: expect.any(String) });
  });

  it('environment lets the SDKs find network and key without either in the code', async () => {
    const script = `import OpenAI from 'openai';
import Anthropic from '@anthropic-ai/sdk';
const { data } = await new OpenAI().models.list();
const messages = [{ role: 'user', content: 'What is the capital of France?' }];
const message = await new Anthropic().messages.create({ model: process.env.ANTHROPIC_MODEL, max_tokens: 64, temperature: 0, messages });
console.log(data[0].id, message.content[0].text);`;
    const file = join(ROOT, 'test', `.quick-start-environment-${process.pid}.mjs`);
    writeFileSync(file, script);
    try {
      const { stdout, output } = await runCommand('bash', ['-c', `${snippet('environment').code}\n"$0" "$1"`, process.execPath, file]);
      expect(stdout, output).toMatch(/^\S+ .*Paris/);
    } finally {
      rmSync(file);
    }
  });

  it('verify verifies an answer', async () => {
    const command = snippet('verify').code.replace('--package @inference/verifier ', '');
    const { code, output } = await runCommand('bash', ['-c', command], { cwd: ROOT });
    expect(output).toMatch(/verified/i);
    expect(code).toBe(0);
  });
});

describe('the settings of coding agents', () => {
  it('claude-code point the program at the Messages endpoint', async () => {
    const directory = temporaryDirectory('quick-start');
    const bin = join(directory, 'bin');
    mkdirSync(bin);
    // Replaces Claude Code by a script that sends one request with the same environment variables.
    writeFileSync(
      join(bin, 'claude'),
      `#!/bin/sh
exec curl -sS "$ANTHROPIC_BASE_URL/v1/messages" -H "x-api-key: $ANTHROPIC_API_KEY" -H 'anthropic-version: 2023-06-01' -H 'content-type: application/json' \\
  -d '{"model":"'"$ANTHROPIC_MODEL"'","max_tokens":64,"temperature":0,"messages":[{"role":"user","content":"What is the capital of France?"}]}'
`,
    );
    chmodSync(join(bin, 'claude'), 0o755);
    const { stdout, output } = await runCommand('bash', ['-c', snippet('claude-code').code], {
      env: { ...process.env, PATH: `${bin}:${process.env.PATH}` },
    });
    expect(stdout, output).toContain('Paris');
  });

  it('codex are TOML whose provider answers', async () => {
    const { code, run = '' } = snippet('codex');
    const config = parseToml(code) as { model: string; model_provider: string; model_providers: Record<string, Record<string, string>> };
    const provider = config.model_providers[config.model_provider];
    expect(provider?.wire_api).toBe('responses');
    const [, key = ''] = new RegExp(`^${provider?.env_key}=(\\S+) codex$`).exec(run) ?? [];
    expect(
      await ask(`${provider?.base_url}/responses`, key, { model: config.model, temperature: 0, input: 'What is the capital of France?' }),
    ).toContain('Paris');
  });

  it('opencode are JSON whose provider answers', async () => {
    const { code, run = '' } = snippet('opencode');
    const { provider } = JSON.parse(code) as {
      provider: { network: { options: { baseURL: string; apiKey: string }; models: Record<string, unknown> } };
    };
    const { options, models } = provider.network;
    const [, variable = ''] = /^\{env:(\w+)\}$/.exec(options.apiKey) ?? [];
    const [, key = '', model = ''] = new RegExp(`^${variable}=(\\S+) opencode run -m network/(\\S+) `).exec(run) ?? [];
    expect(Object.keys(models)).toEqual([model]);
    const messages = [{ role: 'user', content: 'What is the capital of France?' }];
    expect(await ask(`${options.baseURL}/chat/completions`, key, { model, temperature: 0, messages })).toContain('Paris');
  });
});

async function ask(url: string, key: string, body: object): Promise<string> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  return response.text();
}
