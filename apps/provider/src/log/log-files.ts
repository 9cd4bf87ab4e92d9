/** Log files of the daemon in a data directory: their paths, their last lines, and new lines as they are written. */
import { closeSync, fstatSync, openSync, readSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** The daemon's own log, JSON lines. */
export function logFile(dataDir: string): string {
  return join(dataDir, 'logs', 'provider.log');
}

/** Output of the process outside its log: an error at start, or a crash. */
export function outputFile(dataDir: string): string {
  return join(dataDir, 'logs', 'output.log');
}

const BLOCK_BYTES = 64 * 1024;
const MAX_OUTPUT_BYTES = 1 << 20;
const NEWLINE = 0x0a;

/** Truncates a large output file, because service managers only append to it. */
export function trimOutput(dataDir: string): void {
  const path = outputFile(dataDir);
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > MAX_OUTPUT_BYTES) truncateSync(path, 0);
}

/** Last complete lines, oldest first, if necessary also from the rotated file `PATH.1`. */
export function lastLines(path: string, count: number): string[] {
  const file = open(path);
  try {
    return lastLinesOf(path, file, count).lines;
  } finally {
    if (file !== null) closeSync(file);
  }
}

interface LastLines {
  readonly lines: string[];
  /** Bytes of the open file up to the end of its last whole line. */
  readonly endOffset: number;
}

/** @param file Descriptor of `path`; null if there is no such file. */
function lastLinesOf(path: string, file: number | null, count: number): LastLines {
  const { lines, endOffset } = file === null ? { lines: [], endOffset: 0 } : linesFromEnd(file, count);
  if (lines.length >= count) return { lines, endOffset };
  const previous = open(`${path}.1`);
  if (previous === null) return { lines, endOffset };
  try {
    return { lines: [...linesFromEnd(previous, count - lines.length).lines, ...lines], endOffset };
  } finally {
    closeSync(previous);
  }
}

function linesFromEnd(file: number, count: number): LastLines {
  const { size } = fstatSync(file);
  let start = size;
  let tail = Buffer.alloc(0);
  // Counts newlines in bytes, because a block may begin inside a character. One more: the newline before the first line.
  while (start > 0 && newlines(tail) <= count) {
    const length = Math.min(BLOCK_BYTES, start);
    start -= length;
    const block = Buffer.alloc(length);
    readSync(file, block, 0, length, start);
    tail = Buffer.concat([block, tail]);
  }
  const wholeLines = tail.subarray(0, tail.lastIndexOf(NEWLINE) + 1);
  const lines = wholeLines.toString('utf8').split('\n').slice(0, -1);
  return { lines: count === 0 ? [] : lines.slice(-count), endOffset: start + wholeLines.length };
}

function newlines(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) count++;
  return count;
}

interface FollowOptions {
  /** Lines of the existing log to yield first. Default 0. */
  readonly lastLineCount?: number;
  readonly pollMs?: number;
}

/**
 * Yields the last lines, then complete new lines, also after a rotation, until aborted. A truncated file is read from its start.
 *
 * One open file serves both reads, so that no line between them is lost or repeated.
 */
export async function* follow(
  path: string,
  signal: AbortSignal,
  { lastLineCount = 0, pollMs = 250 }: FollowOptions = {},
): AsyncGenerator<string[]> {
  let file = open(path);
  let rest = '';
  const decoder = new TextDecoder();
  try {
    const last = lastLinesOf(path, file, lastLineCount);
    let offset = last.endOffset;
    if (last.lines.length > 0) yield last.lines;
    while (!signal.aborted) {
      const lines: string[] = [];
      const isRotated = file === null || statSync(path, { throwIfNoEntry: false })?.ino !== fstatSync(file).ino;
      if (file !== null) {
        // Truncated by `trimOutput`.
        if (fstatSync(file).size < offset) offset = 0;
        const block = Buffer.alloc(BLOCK_BYTES);
        for (let read = readSync(file, block, 0, BLOCK_BYTES, offset); read > 0; read = readSync(file, block, 0, BLOCK_BYTES, offset)) {
          offset += read;
          const parts = (rest + decoder.decode(block.subarray(0, read), { stream: true })).split('\n');
          rest = parts.pop() ?? '';
          lines.push(...parts);
        }
      }
      if (lines.length > 0) yield lines;
      if (isRotated) {
        const next = open(path);
        if (next !== null) {
          if (file !== null) closeSync(file);
          file = next;
          offset = 0;
          rest = '';
          continue;
        }
      }
      await delay(pollMs, undefined, { signal }).catch(() => {});
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
