/**
 * `npx tsx scripts/coding-agents/run.ts [--plain | --proxy] [name ...]` tests coding agents (agents.ts) with a local network.
 *
 * Installs each agent from npm, and sends a prompt in plain mode and through the local end-to-end proxy. Exits 1 on a failure, 2 on a wrong argument.
 */
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Network, startNetwork } from '../network/network.js';
import { type Access, AGENTS, type Agent } from './agents.js';
import { ProxyProgram } from './proxy.js';

const ROOT = resolve(fileURLToPath(new URL('../..', import.meta.url)));
const QUESTION = 'Say hello.';
const AGENT_LIMIT_MS = 10 * 60_000;
/** Options of `make-model.ts`. One narrow layer reads long prompts fast; a trained vocabulary gives realistic token counts. */
const MODEL_OPTIONS =
  '--arch qwen3 --layers 1 --dim 64 --heads 2 --kv-heads 1 --ff 128 --context 128k --type Q8_0 --brief --vocabulary 8192';

interface AgentOutput {
  readonly code: number | null;
  readonly seconds: number;
  readonly stdout: string;
  readonly stderr: string;
}

function makeModel(directory: string): string {
  const path = join(directory, 'agents.gguf');
  const texts = ['README.md', ...['docs', 'apps', 'packages', 'scripts', 'test'].flatMap(textsUnder)].flatMap((file) => ['--text', file]);
  const argv = ['--import', 'tsx', 'scripts/make-model.ts', '--out', path, ...MODEL_OPTIONS.split(' '), ...texts];
  execFileSync(process.execPath, argv, { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'] });
  return path;
}

function textsUnder(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(md|ts)$/.test(name) && !/(^|\/)(node_modules|dist)\//.test(name))
    .map((name) => join(folder, name))
    .sort();
}

/** Installs the package into its own folder. Returns the version that npm chose. */
function install(agent: Agent, folder: string): string {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{"private":true}');
  execFileSync('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error', agent.spec], { cwd: folder, stdio: 'pipe' });
  const name = agent.spec.replace(/(?<=.)@[^/]*$/, '');
  return (JSON.parse(readFileSync(join(folder, 'node_modules', name, 'package.json'), 'utf8')) as { version: string }).version;
}

/** Runs the agent with a separate home and working directory, and only PATH of this process's environment. */
function askAgent(agent: Agent, packages: string, access: Access, directory: string): Promise<AgentOutput> {
  const [home, work] = [join(directory, 'home'), join(directory, 'work')];
  for (const folder of [home, work]) mkdirSync(folder, { recursive: true });
  const { program, args, env } = agent.command(access, home, work, QUESTION);
  const begin = performance.now();
  const child = spawn(join(packages, 'node_modules/.bin', program), args, {
    cwd: work,
    env: { PATH: process.env.PATH ?? '', HOME: home, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: AGENT_LIMIT_MS,
  });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) child[name].setEncoding('utf8').on('data', (text: string) => (output[name] += text));
  return new Promise((done, reject) => {
    child.once('error', reject);
    child.once('close', (code) => done({ code, seconds: (performance.now() - begin) / 1000, ...output }));
  });
}

/** Tests an agent through `proxy`, or in plain mode without one. */
async function tryAgent(agent: Agent, access: Access, proxy: ProxyProgram | null, directory: string): Promise<boolean> {
  const mode = proxy === null ? 'plain' : 'end-to-end';
  const packages = join(directory, 'packages', agent.spec.replaceAll('/', '-'));
  const version = install(agent, packages);
  const target = { ...access, baseUrl: proxy?.baseUrl ?? access.baseUrl };
  const { code, seconds, stdout, stderr } = await askAgent(agent, packages, target, join(directory, mode, agent.name));
  const answer = agent.answer(stdout);
  const verdicts = proxy?.takeLines() ?? [];
  const isVerified = proxy === null || verdicts.some((line) => line.startsWith('POST') && line.includes(' VERIFIED '));
  const completed = code === 0 && answer !== null && isVerified;
  console.log(`${agent.name} ${version}, ${mode}: ${completed ? 'completed' : 'FAILED'} in ${seconds.toFixed(1)} s, exit code ${code}`);
  if (completed) console.log(`  ${JSON.stringify(answer.slice(0, 100))}`);
  else console.log(`${stdout.slice(-2000)}\n${stderr.slice(-2000)}`);
  for (const line of verdicts) console.log(`  ${line}`);
  return completed;
}

async function main(args: readonly string[]): Promise<number> {
  const names = args.filter((argument) => !argument.startsWith('--'));
  const options = args.filter((argument) => argument.startsWith('--'));
  const unknown = [
    ...names.filter((name) => !AGENTS.some((agent) => agent.name === name)),
    ...options.filter((option) => option !== '--plain' && option !== '--proxy'),
  ];
  if (unknown.length > 0) {
    console.error(`unknown: ${unknown.join(', ')}; there are --plain, --proxy and the agents ${AGENTS.map(({ name }) => name).join(', ')}`);
    return 2;
  }
  if (options.includes('--plain') && options.includes('--proxy')) {
    console.error('--plain and --proxy exclude each other; both modes are tested without them');
    return 2;
  }
  const directory = mkdtempSync(join(tmpdir(), 'coding-agents-'));
  let network: Network | undefined;
  let proxy: ProxyProgram | null = null;
  try {
    const modelPath = makeModel(directory);
    network = await startNetwork({ port: 0, providers: 1, dataDir: join(directory, 'data'), modelPath });
    const access = { baseUrl: network.baseUrl, apiKey: network.apiKey, model: network.models[0] as string };
    if (!options.includes('--plain')) proxy = await ProxyProgram.start(network.baseUrl, join(directory, 'proxy.json'));
    let failures = 0;
    for (const agent of AGENTS.filter(({ name }) => names.length === 0 || names.includes(name))) {
      if (!options.includes('--proxy') && !(await tryAgent(agent, access, null, directory))) failures++;
      if (proxy !== null && !(await tryAgent(agent, access, proxy, directory))) failures++;
    }
    return failures === 0 ? 0 : 1;
  } finally {
    await proxy?.stop();
    await network?.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

process.exit(await main(process.argv.slice(2)));
