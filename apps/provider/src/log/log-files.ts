/** Log files of a data directory: names, last lines, and following. */
import { closeSync, fstatSync, openSync, readSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** The daemon's own log, JSON lines. */
export function logFile(dataDir: string): string {
  return join(dataDir, 'logs', 'provider.log');
}

/** Output of the process beside its log: an error at start, or a crash. */
export function outputFile(dataDir: string): string {
  return join(dataDir, 'logs', 'output.log');
}

const BLOCK = 64 * 1024;
const MAX_OUTPUT = 1 << 20;

/** Service managers append to the output file and never truncate it. */
export function trimOutput(dataDir: string): void {
  const path = outputFile(dataDir);
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > MAX_OUTPUT) truncateSync(path, 0);
}

/** Last lines, oldest first; continues in the previous file if the current one has too few. */
export function lastLines(path: string, count: number): string[] {
  const lines = linesFromEnd(path, count);
  if (lines.length >= count) return lines;
  return [...linesFromEnd(`${path}.1`, count - lines.length), ...lines];
}

function linesFromEnd(path: string, count: number): string[] {
  const file = open(path);
  if (file === null) return [];
  try {
    let at = fstatSync(file).size;
    let tail = Buffer.alloc(0);
    // Bytes, not text: a block may begin inside a letter.
    while (at > 0 && newlines(tail) <= count) {
      const length = Math.min(BLOCK, at);
      at -= length;
      const block = Buffer.alloc(length);
      readSync(file, block, 0, length, at);
      tail = Buffer.concat([block, tail]);
    }
    const lines = tail.toString('utf8').split('\n');
    lines.pop();
    return count === 0 ? [] : lines.slice(-count);
  } finally {
    closeSync(file);
  }
}

function newlines(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) count++;
  return count;
}

/** Yields whole lines added to `path`, also after a rotation. Ends with the signal. */
export async function* follow(path: string, signal: AbortSignal, everyMs = 250): AsyncGenerator<string[]> {
  let file = open(path);
  let at = file === null ? 0 : fstatSync(file).size;
  let rest = '';
  const decoder = new TextDecoder();
  try {
    while (!signal.aborted) {
      const lines: string[] = [];
      const isNew = file === null || statSync(path, { throwIfNoEntry: false })?.ino !== fstatSync(file).ino;
      if (file !== null) {
        const block = Buffer.alloc(BLOCK);
        for (let read = readSync(file, block, 0, BLOCK, at); read > 0; read = readSync(file, block, 0, BLOCK, at)) {
          at += read;
          const parts = (rest + decoder.decode(block.subarray(0, read), { stream: true })).split('\n');
          rest = parts.pop() ?? '';
          lines.push(...parts);
        }
      }
      if (lines.length > 0) yield lines;
      if (isNew) {
        const next = open(path);
        if (next !== null) {
          if (file !== null) closeSync(file);
          file = next;
          at = 0;
          rest = '';
          continue;
        }
      }
      await delay(everyMs, undefined, { signal }).catch(() => {});
    }
  } finally {
    if (file !== null) closeSync(file);
  }
}

function open(path: string): number | null {
  try {
    return openSync(path, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
