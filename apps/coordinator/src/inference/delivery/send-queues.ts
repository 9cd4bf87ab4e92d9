/** `SendQueues` reads from `/proc/self/net/tcp` (proc_pid_net(5)) how many sent bytes of a connection are unacknowledged. Linux only. */
import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';

type ReadTable = (table: 'tcp' | 'tcp6') => Promise<string>;

/** Minimum pause after a reading, in milliseconds. */
const MIN_PAUSE_MS = 10;
/** Pause after a reading, as a multiple of its duration. */
const PAUSE_FACTOR = 5;
/** Rows parsed per turn of the event loop. Busy machines list tens of thousands of connections. */
const ROWS_PER_TURN = 500;
/** Local and remote address, state, and bytes in the send queue. */
const ROW = /: ([0-9A-F]+:[0-9A-F]{4} [0-9A-F]+:[0-9A-F]{4}) [0-9A-F]{2} ([0-9A-F]{8}):/g;

/** Bytes in the send queue. Key: local and remote address, as in the table. */
type Rows = ReadonlyMap<string, number>;

export class SendQueues {
  readonly #tables: Readonly<Record<'tcp' | 'tcp6', Table>>;
  readonly #supported: boolean;

  constructor(read: ReadTable = readTable, supported = process.platform === 'linux') {
    this.#tables = { tcp: new Table(() => read('tcp')), tcp6: new Table(() => read('tcp6')) };
    this.#supported = supported;
  }

  /** Unacknowledged bytes of a connection, from a reading that starts after this call. Null if unknown. Never rejects. */
  async unacknowledged(socket: Socket): Promise<number | null> {
    const row = this.#supported ? rowOf(socket) : null;
    if (row === null) return null;
    const rows = await this.#tables[row.table].read();
    return rows?.get(row.ends) ?? null;
  }
}

/** A kernel table. Readings never overlap, and all waiting callers share the next reading. */
class Table {
  readonly #readText: () => Promise<string>;
  #next: Promise<Rows | null> | null = null;
  #latest: Promise<unknown> = Promise.resolve();
  #readyAt = 0;
  #isReadable = true;

  constructor(readText: () => Promise<string>) {
    this.#readText = readText;
  }

  /** Rows of a reading that starts after this call. Always null once a reading has failed. */
  read(): Promise<Rows | null> {
    this.#next ??= this.#begin();
    return this.#next;
  }

  async #begin(): Promise<Rows | null> {
    await this.#latest;
    await pause(Math.max(0, this.#readyAt - performance.now()));
    this.#next = null;
    const rows = this.#parse();
    this.#latest = rows;
    return rows;
  }

  async #parse(): Promise<Rows | null> {
    if (!this.#isReadable) return null;
    const begunAt = performance.now();
    try {
      const rows = new Map<string, number>();
      let parsedCount = 0;
      for (const [, ends = '', queue = ''] of (await this.#readText()).matchAll(ROW)) {
        rows.set(ends, Number.parseInt(queue, 16));
        if (++parsedCount % ROWS_PER_TURN === 0) await nextTurn();
      }
      return rows;
    } catch {
      this.#isReadable = false;
      return null;
    } finally {
      const endedAt = performance.now();
      this.#readyAt = endedAt + Math.max(MIN_PAUSE_MS, PAUSE_FACTOR * (endedAt - begunAt));
    }
  }
}

function readTable(table: 'tcp' | 'tcp6'): Promise<string> {
  return readFile(`/proc/self/net/${table}`, 'latin1');
}

/** Table and row key of a connection. Null if not connected, or for an unsupported address format. */
function rowOf({ localAddress, localPort, remoteAddress, remotePort }: Socket): { table: 'tcp' | 'tcp6'; ends: string } | null {
  if (localAddress === undefined || localPort === undefined || remoteAddress === undefined || remotePort === undefined) return null;
  const local = addressHex(localAddress);
  const remote = addressHex(remoteAddress);
  if (local === null || remote === null) return null;
  return { table: local.length === 8 ? 'tcp' : 'tcp6', ends: `${local}:${portHex(localPort)} ${remote}:${portHex(remotePort)}` };
}

function portHex(port: number): string {
  return port.toString(16).toUpperCase().padStart(4, '0');
}

/** Formats an address as the kernel does: 32-bit words in little-endian order. Null for an unsupported format. */
function addressHex(address: string): string | null {
  const bytes = address.includes(':') ? bytesOfV6(address) : bytesOfV4(address);
  if (bytes === null) return null;
  let hex = '';
  for (let at = 0; at < bytes.length; at += 4) {
    for (let index = at + 3; index >= at; index--) hex += (bytes[index] ?? 0).toString(16).toUpperCase().padStart(2, '0');
  }
  return hex;
}

function bytesOfV4(address: string): number[] | null {
  const parts = address.split('.').map(Number);
  return parts.length === 4 && parts.every((part) => Number.isInteger(part) && part >= 0 && part <= 255) ? parts : null;
}

/** Accepts a zone and a dotted IPv4 suffix (RFC 4291 section 2.2). */
function bytesOfV6(address: string): number[] | null {
  const [text = ''] = address.split('%');
  const mapped = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(text);
  const v4 = mapped?.[2] === undefined ? [] : bytesOfV4(mapped[2]);
  if (v4 === null) return null;
  const groups = (mapped?.[1] === undefined ? text : mapped[1].replace(/:$/, mapped[1].endsWith('::') ? ':' : '')).split('::');
  const [left = [], right = []] = groups.map((half) => half.split(':').filter((group) => group !== ''));
  const missing = 8 - v4.length / 2 - left.length - right.length;
  if (groups.length > 2 || missing < 0 || (groups.length === 1 && missing !== 0)) return null;
  const words = [...left, ...Array.from({ length: missing }, () => '0'), ...right].map((group) => Number.parseInt(group, 16));
  if (words.some((word) => !Number.isInteger(word))) return null;
  return [...words.flatMap((word) => [word >> 8, word & 255]), ...v4];
}
