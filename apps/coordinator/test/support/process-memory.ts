/** Searches the writable memory of another process of the same user for texts. Linux only (proc_pid_mem(5)). */
import { open, readFile } from 'node:fs/promises';

const CHUNK_BYTES = 4 * 1024 * 1024;

/** Texts, in ASCII, that occur anywhere in the memory: heap, buffers, stacks. */
export async function textsInMemory(pid: number, texts: readonly string[]): Promise<Set<string>> {
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
