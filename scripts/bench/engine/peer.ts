/** `startPeer`: starts llama.cpp's own server, which the engine bench compares with the agent. */
import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../network/cluster/free-ports.js';
import type { PeerProgram } from './peer-program.js';

const START_MS = 60_000;
/** After a failed request, time to wait for the end of the process, which would explain the failure. */
const END_MS = 500;

export interface PeerSettings {
  readonly model: string;
  readonly slots: number;
  /** Tokens per slot. */
  readonly contextSize: number;
  /** File for the server's output. */
  readonly log: string;
  readonly extraArgs?: readonly string[];
  readonly startMs?: number;
}

export interface Peer {
  readonly url: string;
  readonly pid: number;
  /** Awaits a promise. If the process ends before, rejects with the reason and the last output. */
  whileItRuns<T>(awaited: Promise<T>): Promise<T>;
  stop(): Promise<void>;
}

/** Arguments of the server: one compute thread, as the agent without a GPU, and the context divided equally among the slots. */
export function peerArguments({ model, slots, contextSize, extraArgs = [] }: PeerSettings, port: number): string[] {
  return [
    ...['--model', model, '--host', '127.0.0.1', '--port', String(port), '--jinja', '--no-warmup', '--no-webui'],
    ...['--threads', '1', '--threads-batch', '1', '--threads-http', '2'],
    ...['--parallel', String(slots), '--ctx-size', String(slots * contextSize), '--no-kv-unified', ...extraArgs],
  ];
}

/** Starts the server. Resolves once healthy; rejects if it ends, or is not healthy in time. */
export async function startPeer({ path, libraries }: PeerProgram, settings: PeerSettings): Promise<Peer> {
  const port = await freePort();
  const log = openSync(settings.log, 'w');
  // Backends are found in the working folder.
  const found = libraries === null ? {} : { cwd: libraries, env: { ...process.env, LD_LIBRARY_PATH: libraries } };
  const child = spawn(path, peerArguments(settings, port), { stdio: ['ignore', log, log], ...found });
  closeSync(log);
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`));
  });
  const failed = ended.then((how) =>
    Promise.reject(new Error(`llama.cpp's server ended: ${how}\n${readFileSync(settings.log, 'utf8').slice(-2000)}`)),
  );
  failed.catch(() => undefined);
  const url = `http://127.0.0.1:${port}`;
  const starting = AbortSignal.timeout(settings.startMs ?? START_MS);
  const stop = async () => {
    child.kill('SIGKILL');
    await ended;
  };
  try {
    await Promise.race([untilHealthy(url, starting), failed]);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    url,
    pid: child.pid ?? 0,
    whileItRuns: async (awaited) => {
      try {
        return await Promise.race([awaited, failed]);
      } catch (error) {
        await Promise.race([failed, sleep(END_MS)]);
        throw error;
      }
    },
    stop,
  };
}

async function untilHealthy(url: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const answer = await fetch(`${url}/health`, { signal }).catch(() => null);
    await answer?.arrayBuffer();
    if (answer?.ok === true) return;
    await sleep(100);
  }
  throw new Error("llama.cpp's server was not healthy in time");
}

/** Names of the processor backends that a process has loaded; from /proc. */
export function loadedBackends(pid: number): string[] {
  return [...new Set(readFileSync(`/proc/${pid}/maps`, 'utf8').match(/\/[^\n]*libggml-cpu[^\n/]*\.so/g) ?? [])];
}
