/**
 * Engine bench with `--peer`: compares the provider's agent with llama.cpp's own server (the peer) in alternating rounds.
 *
 * Both use the same native libraries, unless `LLAMA_SERVER` names another server. The agent also renders, encrypts and signs its answers.
 *
 * On a busy machine, compare processor time per token. `PEER_BENCH='60M, greedy'` runs the cases whose titles contain the text.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { FakeCoordinator, type FakeProviderSession } from '../../../apps/provider/test/support/fake-coordinator.js';
import { childrenOf, ProviderProcess } from '../../../apps/provider/test/support/provider-process.js';
import { startProgress } from '../../progress.js';
import { sized } from '../size.js';
import { cpuSeconds, median } from '../statistics.js';
import { loadedBackends, type Peer, startPeer } from './peer.js';
import { judge, type Measured, type ModelName, type PeerCase, type Round, SETUPS, type Setup } from './peer-cases.js';
import { findOrBuildPeer, type PeerProgram } from './peer-program.js';

const ROUNDS = sized(3, 1);
/** Time after which no further answer of a round begins. */
const ROUND_MS = sized(1500, 100);
const WARM_UP_MS = 100;
const START_MS = 60_000;
/** Long, because the last of four long prompts waits for the others. */
const ANSWER_MS = 300_000;
const LONG_TEXT_TOKENS = 1900;
const { PEER_BENCH = '' } = process.env;
const TEXT = 'The quick brown fox jumps over the lazy dog and runs to the sea. ';
/** The peer's error for a text that its parser rejects. */
const MALFORMED_TEXT = 'The model produced output that does not match';
/** Text of an answer, thought or call. The first event holds the role alone. */
const FIRST_TEXT = /"(?:content|reasoning_content|text|arguments)":"[^"]/;

/** Request body, of which only the limit is read here. */
interface Body {
  readonly max_tokens: number;
}

interface Model {
  readonly name: ModelName;
  readonly path: string;
}

interface Answer {
  readonly tokens: number;
  readonly firstTokenMs: number;
}

/** One of the compared programs. */
interface Side {
  readonly ask: (asked: PeerCase, body: Body) => Promise<Answer>;
  /** Its processes, whose processor time is summed. */
  readonly pids: () => readonly number[];
}

interface Sides {
  readonly peer: Side;
  readonly agent: Side;
}

interface Load extends Measured {
  readonly tokensPerAnswer: number;
}

/** Resolves to whether every target was met. */
export async function benchAgainstPeer(): Promise<boolean> {
  const program = findOrBuildPeer();
  const directory = mkdtempSync(join(tmpdir(), 'inference-bench-'));
  try {
    const random = join(directory, 'random-60m.gguf');
    // Q8_0, the common download; half precision is three times slower on processors without support.
    const args = ['--preset', '60m', '--type', 'Q8_0', '--endless', '--text', at('../../../docs/architecture.md'), '--out', random];
    execFileSync(process.execPath, ['--import', 'tsx', at('../../make-model.ts'), ...args], { stdio: 'inherit', timeout: START_MS });
    const demo: Model = { name: 'demo', path: at('../../../apps/provider/demo-models/pico/pico.gguf') };
    const models = sized<Model[]>([{ name: '60M', path: random }, demo], [demo]);
    let met = true;
    let caseCount = 0;
    for (const model of models) {
      for (const setup of SETUPS) {
        const cases = setup.cases.filter((each) => titleOf(model, each).includes(PEER_BENCH));
        caseCount += cases.length;
        if (cases.length > 0) met = (await compare(program, model, { ...setup, cases }, join(directory, 'server.log'))) && met;
      }
    }
    if (caseCount === 0) throw new Error(`PEER_BENCH: no case has "${PEER_BENCH}" in its title`);
    return met;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function compare(program: PeerProgram, model: Model, setup: Setup, log: string): Promise<boolean> {
  const { slots, contextSize, peerArgs } = setup;
  const peer = await startPeer(program, { model: model.path, slots, contextSize, log, extraArgs: peerArgs[model.name] });
  const coordinator = await FakeCoordinator.listen();
  const args = ['--simulated-enclave', '--model', model.path, '--slots', String(slots), '--context', String(contextSize)];
  const agent = ProviderProcess.start(coordinator.url, args);
  try {
    const session = await within(START_MS, 'the start of the agent', agent.whileItRuns(coordinator.session()));
    await within(START_MS, 'the registration', agent.whileItRuns(session.admit()));
    const sides = { peer: peerSide(peer), agent: agentSide(session, agent) };
    if (program.libraries !== null) checkBackends(sides);
    const longText = await textOf(peer, LONG_TEXT_TOKENS);
    const bias = await endBias(peer);
    const bodyOf = (each: PeerCase, index: number) => ({
      ...each.body(index, longText),
      max_tokens: each.tokens[model.name],
      ...(each.mayEnd ? {} : { logit_bias: bias }),
      stream: true,
      stream_options: { include_usage: true },
    });
    let met = true;
    for (const each of setup.cases) met = (await compareCase(model, each, sides, (index) => bodyOf(each, index))) && met;
    return met;
  } finally {
    await agent.dispose();
    await coordinator.close();
    await peer.stop();
  }
}

function titleOf({ name }: Model, { name: caseName, streams }: PeerCase): string {
  return `${name}, ${caseName}, ${streams} streams`;
}

async function compareCase(model: Model, each: PeerCase, sides: Sides, bodyOf: (index: number) => Body): Promise<boolean> {
  const rounds: (Round & { readonly peer: Load; readonly agent: Load })[] = [];
  const title = titleOf(model, each);
  const progress = startProgress({ figures: () => `${title}: ${rounds.length} of ${ROUNDS} rounds` });
  try {
    // Cached prompts are in the cache of each slot before the first round.
    const warmUp = { ...each, streams: each.isCached ? each.streams : 1 };
    await measure(sides.peer, warmUp, bodyOf, WARM_UP_MS);
    await measure(sides.agent, warmUp, bodyOf, WARM_UP_MS);
    for (let round = 0; round < ROUNDS; round++) {
      // Alternating order, because the later side of a round has the warmer caches.
      const first = round % 2 === 0 ? await measure(sides.peer, each, bodyOf, ROUND_MS) : null;
      const agent = await measure(sides.agent, each, bodyOf, ROUND_MS);
      rounds.push({ peer: first ?? (await measure(sides.peer, each, bodyOf, ROUND_MS)), agent });
    }
  } finally {
    progress.stop();
  }
  const verdict = judge(rounds);
  const both = (member: keyof Load, digits = 0) =>
    (['peer', 'agent'] as const).map((side) => median(rounds.map((round) => round[side][member])).toFixed(digits)).join(' and ');
  const [peerTokens, agentTokens] = (['peer', 'agent'] as const).map((side) => median(rounds.map((round) => round[side].tokensPerAnswer)));
  const uneven = peerTokens === agentTokens ? '' : ` (${peerTokens?.toFixed(1)} and ${agentTokens?.toFixed(1)} tokens per answer)`;
  console.log(
    `${title}: server and agent ${both('tokensPerSecond')} tokens/s${uneven}, ratio ${verdict.tokensPerSecond.toFixed(2)}; ` +
      `first token ${both('firstTokenMs', 1)} ms, ratio ${verdict.firstTokenMs.toFixed(2)}; ` +
      `processor time per token ${both('cpuPerToken')} µs, ratio ${verdict.cpuPerToken.toFixed(2)}; ` +
      `load ${(loadavg()[0] ?? 0).toFixed(1)} on ${cpus().length} cores: ${verdict.isMet ? 'met' : 'MISSED'}`,
  );
  return verdict.isMet;
}

/** Fails unless both sides have loaded the same processor backend. */
function checkBackends({ peer, agent }: Sides): void {
  const [server, own] = [peer, agent].map(({ pids }) =>
    pids()
      .flatMap(loadedBackends)
      .map((path) => realpathSync(path)),
  );
  if (server?.length !== 1 || server[0] !== own?.[0]) throw new Error(`different kernels: the server has ${server}, the agent ${own}`);
}

/** Runs streams concurrently, each with one answer after another for the given time, and at least one. */
async function measure({ ask, pids }: Side, each: PeerCase, bodyOf: (index: number) => Body, milliseconds: number): Promise<Load> {
  const used = () => pids().reduce((sum, pid) => sum + cpuSeconds(pid), 0);
  const usedBefore = used();
  const begin = performance.now();
  const answers: Answer[] = [];
  let index = 0;
  const worker = async () => {
    do answers.push(await ask(each, bodyOf(index++)));
    while (performance.now() - begin < milliseconds);
  };
  await Promise.all(Array.from({ length: each.streams }, worker));
  const seconds = (performance.now() - begin) / 1000;
  const tokens = answers.reduce((sum, answer) => sum + answer.tokens, 0);
  return {
    tokensPerSecond: tokens / seconds,
    cpuPerToken: ((used() - usedBefore) / tokens) * 1e6,
    firstTokenMs: median(answers.map(({ firstTokenMs }) => firstTokenMs)),
    tokensPerAnswer: tokens / answers.length,
  };
}

function peerSide(peer: Peer): Side {
  const ask = async ({ path, isCached }: PeerCase, body: Body): Promise<Answer> => {
    const clock = new FirstTextClock();
    const response = await fetch(`${peer.url}${path}`, {
      method: 'POST',
      // The server closes idle connections, sometimes just as one is reused.
      headers: { 'content-type': 'application/json', connection: 'close' },
      body: JSON.stringify({ ...body, cache_prompt: isCached }),
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    if (response.body === null) throw new Error('no body');
    for await (const part of response.body) clock.add(part);
    return clock.answer(body.max_tokens);
  };
  return { ask: (...asked) => peer.whileItRuns(ask(...asked)), pids: () => [peer.pid] };
}

function agentSide(session: FakeProviderSession, agent: ProviderProcess): Side {
  const ask = async ({ path, isCached }: PeerCase, body: Body): Promise<Answer> => {
    const clock = new FirstTextClock();
    const context = { endpoint: path, ...(isCached ? { cache_scope: '0'.repeat(32) } : {}) };
    const answered = session.submit({ ...body }, { context, onBytes: (bytes) => clock.add(bytes) });
    const { failure } = await within(ANSWER_MS, 'an answer of the agent', agent.whileItRuns(answered));
    if (failure !== null) throw new Error(`the agent failed: ${failure.code} ${failure.param ?? ''}`);
    return clock.answer();
  };
  const pid = agent.child.pid ?? 0;
  return { ask, pids: () => [pid, ...childrenOf(pid).map((child) => child.pid)] };
}

/** Collects a stream and the time until its first text. */
class FirstTextClock {
  readonly #begin = performance.now();
  readonly #decoder = new TextDecoder();
  #events = '';
  #firstTokenMs: number | null = null;

  add(bytes: Uint8Array): void {
    this.#events += this.#decoder.decode(bytes, { stream: true });
    if (this.#firstTokenMs === null && FIRST_TEXT.test(this.#events)) this.#firstTokenMs = performance.now() - this.#begin;
  }

  /** `maxTokens`: tokens of an answer that the peer reports as malformed, without usage, because a random model wrote it. */
  answer(maxTokens?: number): Answer {
    const usage = /"completion_tokens":(\d+)/.exec(this.#events)?.[1];
    const tokens = usage ?? (this.#events.includes(MALFORMED_TEXT) ? maxTokens : undefined);
    if (tokens === undefined || this.#firstTokenMs === null) throw new Error(`no text or usage came: ${this.#events.slice(-300)}`);
    return { tokens: Number(tokens), firstTokenMs: this.#firstTokenMs };
  }
}

async function within<T>(milliseconds: number, what: string, awaited: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} took more than ${milliseconds / 1000} s`)), milliseconds);
  });
  return await Promise.race([awaited, late]).finally(() => clearTimeout(timer));
}

/** Logit bias against the end-of-text tokens, so that answers reach their limit on both sides. */
async function endBias(peer: Peer): Promise<Record<string, number>> {
  const bias: Record<string, number> = {};
  for (const content of ['<|im_end|>', '<|endoftext|>', '</s>', '<|end|>']) {
    const tokens = await tokenize(peer, content);
    if (tokens.length === 1) bias[String(tokens[0])] = -100;
  }
  return bias;
}

/** Text of about `count` tokens. */
async function textOf(peer: Peer, count: number): Promise<string> {
  const text = TEXT.repeat(count);
  const tokens = await tokenize(peer, text);
  return text.slice(0, Math.round((text.length * count) / tokens.length));
}

async function tokenize({ url, whileItRuns }: Peer, content: string): Promise<readonly number[]> {
  const body = JSON.stringify({ content, parse_special: true });
  const response = await whileItRuns(fetch(`${url}/tokenize`, { method: 'POST', body, signal: AbortSignal.timeout(START_MS) }));
  return ((await response.json()) as { tokens: number[] }).tokens;
}

function at(relative: string): string {
  return fileURLToPath(new URL(relative, import.meta.url));
}
