/** Coding agents for run.ts: npm package, configuration for a network, non-interactive command, and parser of the output. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Access {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly model: string;
}

export interface Command {
  readonly program: string;
  readonly args: readonly string[];
  /** Environment variables in addition to PATH and HOME. */
  readonly env: Readonly<Record<string, string>>;
}

export interface Agent {
  readonly name: string;
  readonly spec: string;
  /** Writes the configuration into `home` or the working directory. */
  readonly command: (access: Access, home: string, work: string, question: string) => Command;
  /** The answer, or null when the output has none. */
  readonly answer: (output: string) => string | null;
}

/** Short, because the random-weight model writes nonsense anyway. */
const MAX_TOKENS = 64;

export const AGENTS: readonly Agent[] = [
  { name: 'claude', spec: '@anthropic-ai/claude-code', command: claude, answer: claudeAnswer },
  // Without `@latest`, npm installs the newest version that supports the running Node; the latest is a native program.
  { name: 'claude-latest', spec: '@anthropic-ai/claude-code@latest', command: claude, answer: claudeAnswer },
  { name: 'codex', spec: '@openai/codex', command: codex, answer: codexAnswer },
  { name: 'opencode-chat', spec: 'opencode-ai', command: opencode('@ai-sdk/openai-compatible'), answer: opencodeAnswer },
  { name: 'opencode-messages', spec: 'opencode-ai', command: opencode('@ai-sdk/anthropic'), answer: opencodeAnswer },
  { name: 'opencode-responses', spec: 'opencode-ai', command: opencode('@ai-sdk/openai'), answer: opencodeAnswer },
];

function claude({ baseUrl, apiKey, model }: Access, _home: string, _work: string, question: string): Command {
  return {
    program: 'claude',
    args: ['-p', question, '--output-format', 'json'],
    env: {
      ANTHROPIC_BASE_URL: baseUrl,
      ANTHROPIC_API_KEY: apiKey,
      ANTHROPIC_MODEL: model,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      CLAUDE_CODE_MAX_OUTPUT_TOKENS: String(MAX_TOKENS),
      API_TIMEOUT_MS: '600000',
    },
  };
}

function claudeAnswer(output: string): string | null {
  for (const { type, is_error, result } of objectsIn(output)) {
    if (type === 'result' && is_error === false && typeof result === 'string') return result;
  }
  return null;
}

function codex({ baseUrl, apiKey, model }: Access, home: string, _work: string, question: string): Command {
  const provider = { name: 'network', base_url: `${baseUrl}/v1`, env_key: 'NETWORK_API_KEY', wire_api: 'responses' };
  const lines = Object.entries(provider).map(([name, value]) => `${name} = ${JSON.stringify(value)}`);
  mkdirSync(join(home, '.codex'), { recursive: true });
  writeFileSync(
    join(home, '.codex', 'config.toml'),
    [`model = ${JSON.stringify(model)}`, 'model_provider = "network"', '', '[model_providers.network]', ...lines, ''].join('\n'),
  );
  return { program: 'codex', args: ['exec', '--skip-git-repo-check', '--json', question], env: { NETWORK_API_KEY: apiKey } };
}

function codexAnswer(output: string): string | null {
  for (const { type, item } of objectsIn(output)) {
    if (type !== 'item.completed' || typeof item !== 'object' || item === null) continue;
    const { type: kind, text } = item as { type?: unknown; text?: unknown };
    if (kind === 'agent_message' && typeof text === 'string') return text;
  }
  return null;
}

function opencode(adapter: string) {
  return ({ baseUrl, apiKey, model }: Access, _home: string, work: string, question: string): Command => {
    const limit = { context: 131_072, output: MAX_TOKENS };
    const network = {
      npm: adapter,
      name: 'network',
      options: { baseURL: `${baseUrl}/v1`, apiKey },
      models: { [model]: { name: model, limit } },
    };
    writeFileSync(join(work, 'opencode.json'), JSON.stringify({ provider: { network }, autoupdate: false, share: 'disabled' }, null, 2));
    return {
      program: 'opencode',
      args: ['run', '--format', 'json', '-m', `network/${model}`, question],
      env: { OPENCODE_DISABLE_AUTOUPDATE: '1' },
    };
  };
}

function opencodeAnswer(output: string): string | null {
  const texts: string[] = [];
  let finished = false;
  for (const { type, part } of objectsIn(output)) {
    if (type === 'error') return null;
    if (type === 'step_finish') finished = true;
    const text = (part as { text?: unknown } | undefined)?.text;
    if (type === 'text' && typeof text === 'string') texts.push(text);
  }
  return finished && texts.length > 0 ? texts.join('') : null;
}

function* objectsIn(output: string): Iterable<Record<string, unknown>> {
  for (const line of output.split('\n')) {
    if (!line.startsWith('{')) continue;
    try {
      yield JSON.parse(line) as Record<string, unknown>;
    } catch {
      // A text line that begins with a brace.
    }
  }
}
