/**
 * Bytes that lie in the kernel's send queues: written to a connection, and not acknowledged by the client's machine. Node does not
 * report them, and a queue grows to megabytes. Linux lists them in `/proc/net/tcp` (proc_pid_net(5)); on other systems they are unknown.
 */
import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';

type ReadTable = (table: 'tcp' | 'tcp6') => Promise<string>;

/** Shortest pause between two readings, in milliseconds, and as a multiple of what the last one took. */
const MIN_PAUSE_MS = 10;
const PAUSE_FACTOR = 5;
/** Rows parsed before the event loop goes on: a busy machine lists tens of thousands. */
const ROWS_PER_TURN = 500;
/** Local and remote end, state, bytes in the send queue. */
const ROW = /: ([0-9A-F]+:[0-9A-F]{4} [0-9A-F]+:[0-9A-F]{4}) [0-9A-F]{2} ([0-9A-F]{8}):/g;

export class SendQueues {
  readonly #read: ReadTable;
  #next: Promise<Reading> | null = null;
  #readyAt = 0;
  #supported: boolean;

  constructor(read: ReadTable = readTable, supported = process.platform === 'linux') {
    this.#read = read;
    this.#supported = supported;
  }

  /** Bytes of a connection that were not acknowledged at some moment after this call. Null: unknown. Never rejects. */
  async unacknowledged(socket: Socket): Promise<number | null> {
    const row = this.#supported ? rowOf(socket) : null;
    if (row === null) return null;
    // Whoever asks while a reading runs takes part in the next one, which begins after the question.
    this.#next ??= this.#start();
    const reading = await this.#next;
    return (await reading.of(row.table)).get(row.ends) ?? null;
  }

  async #start(): Promise<Reading> {
    await pause(Math.max(0, this.#readyAt - performance.now()));
    this.#next = null;
    const begun = performance.now();
    const reading = new Reading(async (table) => {
      try {
        const rows = new Map<string, number>();
        let parsed = 0;
        for (const [, ends = '', queue = ''] of (await this.#read(table)).matchAll(ROW)) {
          rows.set(ends, Number.parseInt(queue, 16));
          if (++parsed % ROWS_PER_TURN === 0) await nextTurn();
        }
        return rows;
      } catch {
        // A system that hides the list.
        this.#supported = false;
        return new Map();
      } finally {
        this.#readyAt = performance.now() + Math.max(MIN_PAUSE_MS, PAUSE_FACTOR * (performance.now() - begun));
      }
    });
    this.#readyAt = begun + MIN_PAUSE_MS;
    return reading;
  }
}

/** One look at the lists, each of which is read when it is asked for. */
class Reading {
  readonly #read: (table: 'tcp' | 'tcp6') => Promise<ReadonlyMap<string, number>>;
  readonly #tables = new Map<string, Promise<ReadonlyMap<string, number>>>();

  constructor(read: (table: 'tcp' | 'tcp6') => Promise<ReadonlyMap<string, number>>) {
    this.#read = read;
  }

  of(table: 'tcp' | 'tcp6'): Promise<ReadonlyMap<string, number>> {
    const known = this.#tables.get(table);
    if (known !== undefined) return known;
    const rows = this.#read(table);
    this.#tables.set(table, rows);
    return rows;
  }
}

function readTable(table: 'tcp' | 'tcp6'): Promise<string> {
  return readFile(`/proc/self/net/${table}`, 'latin1');
}

/** The list that a connection stands in, and its two ends as they stand there. Null: it is not connected. */
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

/** Words of 32 bits as the machine has them, which is little-endian wherever this runs. Null: an address of another form. */
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
