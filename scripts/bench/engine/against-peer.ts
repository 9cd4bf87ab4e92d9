/**
 * `bench engine --peer`: compares the agent with llama.cpp's own server in alternating rounds. The agent also seals and signs.
 *
 * On a busy machine, only processor time per token is comparable.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { FakeCoordinator, type FakeProviderSession } from '../../../apps/provider/test/support/fake-coordinator.js';
import { childrenOf, ProviderProcess } from '../../../apps/provider/test/support/provider-process.js';
import { startProgress } from '../../progress.js';
import { cpuSeconds, median } from '../statistics.js';
import { findOrBuildPeer, type Peer, startPeer } from './peer.js';

const STREAMS = [1, 4, 16];
const TOKENS = 256;
const CONTEXT = 512;
const ROUNDS = 5;
const ROUND_MS = 3000;
/** Maximum extra milliseconds to the first token for the agent. */
const FIRST_TOKEN_MS = 5;

interface Case {
  readonly name: string;
  readonly path: string;
  readonly target: number;
}

/** Results of one side in one round. */
interface Measured {
  readonly tokensPerSecond: number;
  /** Processor time of all processes of the side, in microseconds. */
  readonly cpuPerToken: number;
  readonly firstTokenMs: readonly number[];
}

/** Token count of one response, and time to its first bytes. */
type Ask = (body: object) => Promise<{ readonly tokens: number; readonly firstTokenMs: number }>;

interface Side {
  readonly ask: Ask;
  readonly pids: () => readonly number[];
}

/** Runs the comparison. Resolves to whether every target was met. */
export async function benchAgainstPeer(): Promise<boolean> {
  const program = findOrBuildPeer();
  const directory = mkdtempSync(join(tmpdir(), 'inference-bench-'));
  try {
    const random = join(directory, 'random-60m.gguf');
    // Q8_0, the type that most users download. Half precision is three times slower on processors without support for it.
    const args = ['--preset', '60m', '--type', 'Q8_0', '--endless', '--out', random];
    execFileSync(process.execPath, ['--import', 'tsx', at('../../make-model.ts'), ...args], { stdio: 'inherit' });
    const cases: Case[] = [
      { name: '60M random weights', path: random, target: 0.9 },
      { name: 'demo model', path: at('../../../apps/provider/demo-models/pico/pico.gguf'), target: 0.75 },
    ];
    let met = true;
    for (const each of cases) met = (await compare(program, each)) && met;
    return met;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function compare(program: string, { name, path, target }: Case): Promise<boolean> {
  const max = Math.max(...STREAMS);
  const peer = await startPeer(program, path, max, CONTEXT);
  const coordinator = await FakeCoordinator.listen();
  const args = ['--simulated-enclave', '--model', path, '--slots', String(max), '--context', String(CONTEXT)];
  const agent = ProviderProcess.start(coordinator.url, args);
  try {
    const session = await coordinator.session();
    await session.admit();
    const bias = await endBias(peer);
    const sides = { peer: peerSide(peer), agent: agentSide(session, agent) };
    let met = true;
    for (const streams of STREAMS) met = (await compareStreams(name, sides, streams, bias, target)) && met;
    return met;
  } finally {
    await agent.dispose();
    await coordinator.close();
    await peer.stop();
  }
}

async function compareStreams(
  name: string,
  sides: { readonly peer: Side; readonly agent: Side },
  streams: number,
  bias: object,
  target: number,
): Promise<boolean> {
  const rounds: { peer: Measured; agent: Measured }[] = [];
  const progress = startProgress({ figures: () => `${name}, ${streams} streams: ${rounds.length} of ${ROUNDS} rounds` });
  await measure(sides.peer, streams, bias, 500);
  await measure(sides.agent, streams, bias, 500);
  for (let round = 0; round < ROUNDS; round++) {
    const peer = await measure(sides.peer, streams, bias, ROUND_MS);
    rounds.push({ peer, agent: await measure(sides.agent, streams, bias, ROUND_MS) });
  }
  progress.stop();
  // Compares adjacent rounds, because other load on the machine varies.
  const ratio = median(rounds.map(({ peer, agent }) => agent.tokensPerSecond / peer.tokensPerSecond));
  const cpuRatio = median(rounds.map(({ peer, agent }) => agent.cpuPerToken / peer.cpuPerToken));
  const of = (side: 'peer' | 'agent', value: (measured: Measured) => number) => median(rounds.map((round) => value(round[side])));
  const first = (side: 'peer' | 'agent') => median(rounds.flatMap((round) => round[side].firstTokenMs));
  const late = first('agent') - first('peer');
  const met = ratio >= target && (streams > 1 || late <= FIRST_TOKEN_MS);
  console.log(
    `${name}, ${String(streams).padStart(2)} streams: server ${Math.round(of('peer', (m) => m.tokensPerSecond))} tokens/s, ` +
      `agent ${Math.round(of('agent', (m) => m.tokensPerSecond))} tokens/s, ratio ${ratio.toFixed(2)} (target ${target}); ` +
      `processor time per token ${of('peer', (m) => m.cpuPerToken).toFixed(0)} and ${of('agent', (m) => m.cpuPerToken).toFixed(0)} µs, ` +
      `ratio ${cpuRatio.toFixed(2)}; first token ${first('peer').toFixed(1)} and ${first('agent').toFixed(1)} ms; ` +
      `load ${(loadavg()[0] ?? 0).toFixed(1)} on ${cpus().length} cores: ${met ? 'met' : 'MISSED'}`,
  );
  return met;
}

/** Closed-loop load: a new stream starts when another ends. */
async function measure({ ask, pids }: Side, streams: number, bias: object, milliseconds: number): Promise<Measured> {
  const used = () => pids().reduce((sum, pid) => sum + cpuSeconds(pid), 0);
  const usedBefore = used();
  const begin = performance.now();
  const firstTokenMs: number[] = [];
  let tokens = 0;
  let index = 0;
  const worker = async () => {
    while (performance.now() - begin < milliseconds) {
      const content = `Please write about number ${index++} and what it is good for.`;
      const answer = await ask({
        messages: [{ role: 'user', content }],
        max_tokens: TOKENS,
        temperature: 0,
        logit_bias: bias,
        stream: true,
        stream_options: { include_usage: true },
      });
      tokens += answer.tokens;
      firstTokenMs.push(answer.firstTokenMs);
    }
  };
  await Promise.all(Array.from({ length: streams }, worker));
  const seconds = (performance.now() - begin) / 1000;
  return { tokensPerSecond: tokens / seconds, cpuPerToken: ((used() - usedBefore) / tokens) * 1e6, firstTokenMs };
}

function peerSide({ url, pid }: Peer): Side {
  const ask: Ask = async (body) => {
    const begin = performance.now();
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      // No keep-alive: the server closes idle connections, sometimes at the moment of reuse.
      headers: { 'content-type': 'application/json', connection: 'close' },
      body: JSON.stringify({ ...body, cache_prompt: false }),
    });
    if (response.body === null) throw new Error('no body');
    const decoder = new TextDecoder();
    let text = '';
    let firstTokenMs = 0;
    for await (const part of response.body) {
      text += decoder.decode(part, { stream: true });
      // The first event contains only the role.
      if (firstTokenMs === 0 && /"content":"[^"]|"reasoning_content":"[^"]/.test(text)) firstTokenMs = performance.now() - begin;
    }
    return { tokens: tokensOf(text), firstTokenMs };
  };
  return { ask, pids: () => [pid] };
}

function agentSide(session: FakeProviderSession, agent: ProviderProcess): Side {
  const ask: Ask = async (body) => {
    const begin = performance.now();
    let firstTokenMs = 0;
    const onFirstBytes = () => {
      firstTokenMs = performance.now() - begin;
    };
    const { body: text, failure } = await session.submit({ ...body }, { onFirstBytes });
    if (failure !== null) throw new Error(`the agent failed: ${failure.code}`);
    return { tokens: tokensOf(text), firstTokenMs };
  };
  const pid = agent.child.pid ?? 0;
  return { ask, pids: () => [pid, ...childrenOf(pid).map((child) => child.pid)] };
}

function tokensOf(events: string): number {
  const usage = /"completion_tokens":(\d+)/.exec(events);
  if (usage === null) throw new Error(`no usage came: ${events.slice(-300)}`);
  return Number(usage[1]);
}

/** Logit bias that prevents an early end on either side. */
async function endBias({ url }: Peer): Promise<Record<string, number>> {
  const bias: Record<string, number> = {};
  for (const content of ['<|im_end|>', '<|endoftext|>', '</s>', '<|end|>']) {
    const response = await fetch(`${url}/tokenize`, { method: 'POST', body: JSON.stringify({ content, parse_special: true }) });
    const { tokens } = (await response.json()) as { tokens: number[] };
    if (tokens.length === 1) bias[String(tokens[0])] = -100;
  }
  return bias;
}

function at(relative: string): string {
  return fileURLToPath(new URL(relative, import.meta.url));
}
