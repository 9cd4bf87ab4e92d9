/**
 * A closed-loop load: a fixed number of requests in flight over kept connections, for a fixed time. It counts what came back
 * whole and refuses to measure answers that are wrong.
 */
import { Agent, request } from 'node:http';

export interface LoadOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: (index: number) => string;
  /** Requests in flight. */
  readonly concurrency: number;
  readonly durationMs: number;
  /** Throws when an answer is not what was asked for. Called for every answer with its status and whole body. */
  readonly check: (status: number, body: string) => void;
}

export interface LoadResult {
  readonly answers: number;
  readonly seconds: number;
  /** Bodies that came back, in characters. */
  readonly characters: number;
  /** Milliseconds from request to first body byte, ascending. */
  readonly firstByteMs: readonly number[];
}

/** Runs the load. Rejects on the first failed or wrong answer. */
export async function runLoad(options: LoadOptions): Promise<LoadResult> {
  const agent = new Agent({ keepAlive: true, maxSockets: options.concurrency });
  const begin = performance.now();
  const end = begin + options.durationMs;
  const firstByteMs: number[] = [];
  let answers = 0;
  let characters = 0;
  let index = 0;
  const worker = async (): Promise<void> => {
    while (performance.now() < end) {
      const answer = await post(agent, options, options.body(index++));
      options.check(answer.status, answer.body);
      answers++;
      characters += answer.body.length;
      firstByteMs.push(answer.firstByteMs);
    }
  };
  try {
    await Promise.all(Array.from({ length: options.concurrency }, worker));
  } finally {
    agent.destroy();
  }
  firstByteMs.sort((a, b) => a - b);
  return { answers, seconds: (performance.now() - begin) / 1000, characters, firstByteMs };
}

interface Answer {
  readonly status: number;
  readonly body: string;
  readonly firstByteMs: number;
}

function post(agent: Agent, options: LoadOptions, body: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const begin = performance.now();
    const headers = { ...options.headers, 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    const outgoing = request(options.url, { agent, method: 'POST', headers }, (response) => {
      const parts: string[] = [];
      let firstByteMs = 0;
      response.setEncoding('latin1');
      response.on('data', (part: string) => {
        if (parts.push(part) === 1) firstByteMs = performance.now() - begin;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: parts.join(''), firstByteMs }));
      response.on('error', reject);
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}
