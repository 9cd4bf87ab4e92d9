/** The coordinator program never holds the plaintext of a sealed request or answer: not in memory, log or data directory. */

import { open, readFile } from 'node:fs/promises';
import { fromUtf8, utf8 } from '@inference/protocol';
import { afterEach, expect, it } from 'vitest';
import { filesHolding } from '../../../../test/support/files-holding.js';
import { type CoordinatorProgram, startProgram } from '../support/coordinator-program.js';
import { MODEL, until } from '../support/harness.js';
import { ScriptedProvider } from '../support/scripted-provider.js';
import type { ScriptedSealedJob } from '../support/scripted-sealed-job.js';
import { postSealed, seal } from '../support/sealed-calls.js';

const PROMPT = 'canary-prompt-5f1d2c';
const OUTPUT = 'canary-output-9b7e4a';

let program: CoordinatorProgram;
afterEach(() => program.close());

// Only Linux lets a program read the memory of its child.
it.runIf(process.platform === 'linux')('finds the context of a running sealed job in memory, and nothing of its texts', async () => {
  program = await startProgram();
  const jobs: ScriptedSealedJob[] = [];
  const provider = await ScriptedProvider.connect(program.url, {
    models: [MODEL],
    onSealedJob: (job) => {
      jobs.push(job);
      job.tokens = 1;
      job.begin([`data: ${OUTPUT}\n\n`]);
    },
  });
  const sealed = seal([provider], { stream: true }, utf8(`{"messages":[{"role":"user","content":"${PROMPT}"}]}`));
  const response = await postSealed(program, sealed.bytes);
  expect(response.status).toBe(200);
  expect(fromUtf8(jobs[0]?.opened.body ?? new Uint8Array())).toContain(PROMPT);
  // While the job runs, the coordinator holds the sealed request for another attempt.
  const { nonce } = sealed.context;
  expect(await textsInMemory(program.pid, [PROMPT, OUTPUT, nonce])).toEqual(new Set([nonce]));
  jobs[0]?.complete();
  await response.arrayBuffer();
  expect(await textsInMemory(program.pid, [PROMPT, OUTPUT])).toEqual(new Set());
  const jobId = String(jobs[0]?.context.job_id);
  // The program's output arrives after its answer.
  await until(() => JSON.stringify(program.log()).includes(jobId));
  const log = JSON.stringify(program.log());
  expect(filesHolding(program.dataDir, 'SQLite format 3')).not.toEqual([]);
  for (const text of [PROMPT, OUTPUT]) {
    expect(log).not.toContain(text);
    expect(filesHolding(program.dataDir, text)).toEqual([]);
  }
  provider.close();
});

const CHUNK_BYTES = 4 * 1024 * 1024;

/**
 * Finds the texts, in ASCII, that occur anywhere in the memory of a process of the same user: heap, buffers, stacks. Linux only
 * (proc_pid_mem(5)).
 */
async function textsInMemory(pid: number, texts: readonly string[]): Promise<Set<string>> {
  const found = new Set<string>();
  const overlap = Math.max(...texts.map(({ length }) => length));
  const buffer = Buffer.alloc(CHUNK_BYTES + overlap);
  const memory = await open(`/proc/${pid}/mem`, 'r');
  try {
    for (const { start, end } of await writableRegions(pid)) {
      for (let at = start; at < end; at += CHUNK_BYTES) {
        const length = Math.min(buffer.length, end - at);
        // A region may have been unmapped since the list was read.
        const read = await memory.read(buffer, 0, length, at).catch(() => null);
        if (read === null) break;
        const bytes = buffer.subarray(0, read.bytesRead);
        for (const text of texts) if (bytes.includes(text, 0, 'latin1')) found.add(text);
      }
    }
  } finally {
    await memory.close();
  }
  return found;
}

async function writableRegions(pid: number): Promise<{ start: number; end: number }[]> {
  const maps = await readFile(`/proc/${pid}/maps`, 'utf8');
  return [...maps.matchAll(/^([0-9a-f]+)-([0-9a-f]+) rw/gm)].map(([, start = '', end = '']) => ({
    start: Number.parseInt(start, 16),
    end: Number.parseInt(end, 16),
  }));
}
