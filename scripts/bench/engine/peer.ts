/** Starts llama.cpp's own server: the program `LLAMA_SERVER`, or a build of node-llama-cpp's sources. The first build takes minutes. */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../network/cluster/free-ports.js';

const SOURCES = fileURLToPath(new URL('../../../node_modules/node-llama-cpp/llama/', import.meta.url));
const CONFIGURE = ['-DCMAKE_BUILD_TYPE=Release', '-DLLAMA_CURL=OFF', '-DLLAMA_BUILD_TESTS=OFF', '-DLLAMA_BUILD_EXAMPLES=OFF'];

/** Path of the program. Throws when a build is impossible (git, cmake and a C++ compiler are needed). */
export function findOrBuildPeer(): string {
  const { LLAMA_SERVER: named, XDG_CACHE_HOME: cache = join(homedir(), '.cache') } = process.env;
  if (named !== undefined) return named;
  const { tag } = JSON.parse(readFileSync(join(SOURCES, 'llama.cpp.info.json'), 'utf8')) as { tag: string };
  const directory = join(cache, 'inference-bench', `llama.cpp-${tag}`);
  const program = join(directory, 'build', 'bin', 'llama-server');
  if (existsSync(program)) return program;
  console.log(`building llama.cpp's server ${tag} in ${directory}`);
  mkdirSync(directory, { recursive: true });
  const source = join(directory, 'source');
  const run = (command: string, ...args: string[]) =>
    execFileSync(command, args, { cwd: directory, stdio: ['ignore', 'ignore', 'inherit'] });
  if (!existsSync(source)) run('git', 'clone', '--quiet', join(SOURCES, 'gitRelease.bundle'), source);
  run('cmake', '-S', source, '-B', 'build', ...CONFIGURE);
  run('cmake', '--build', 'build', '--target', 'llama-server', '-j2');
  return program;
}

export interface Peer {
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}

/** Starts the server with one compute thread; resolves once healthy, rejects if the server exits. `contextSize`: tokens per stream. */
export async function startPeer(program: string, model: string, streams: number, contextSize: number): Promise<Peer> {
  const port = await freePort();
  const args = ['-m', model, '--host', '127.0.0.1', '--port', String(port), '-t', '1', '-tb', '1', '--threads-http', '2', '--jinja'];
  args.push('-np', String(streams), '-c', String(streams * contextSize), '--no-warmup');
  const child = spawn(program, args, { stdio: 'ignore' });
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`));
  });
  const url = `http://127.0.0.1:${port}`;
  const end = ended.then((how) => Promise.reject(new Error(`llama.cpp's server ended: ${how}`)));
  const starting = new AbortController();
  try {
    await Promise.race([untilHealthy(url, starting.signal), end]);
  } finally {
    starting.abort();
  }
  return {
    url,
    pid: child.pid ?? 0,
    stop: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

async function untilHealthy(url: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const answer = await fetch(`${url}/health`).catch(() => null);
    await answer?.arrayBuffer();
    if (answer?.ok === true) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
