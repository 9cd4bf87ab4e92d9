/** `TcpProxy` simulates network faults: stalls without closing, delay, disconnects and duplicated WebSocket messages. */
import { connect, createServer, type Server, type Socket } from 'node:net';

/** `up`: from the side that connected to the proxy. */
export type Direction = 'up' | 'down';

export class TcpProxy {
  readonly #server: Server;
  readonly #target: URL;
  readonly #isWebSocket: boolean;
  readonly #links = new Set<Link>();
  #stalled = false;
  #delayMs = 0;
  #address = '';
  /** Numbers of binary messages still to be duplicated. */
  readonly #duplicates = { up: 0, down: 0 };
  readonly bytes = { up: 0, down: 0 };
  duplicated = 0;

  private constructor(target: string, isWebSocket: boolean) {
    this.#target = new URL(target);
    this.#isWebSocket = isWebSocket;
    this.#server = createServer((client) => this.#link(client));
  }

  /** A proxy to an address such as `http://127.0.0.1:8080`. `isWebSocket`: false for protocols without an HTTP head. */
  static async start(target: string, { isWebSocket = true } = {}): Promise<TcpProxy> {
    const proxy = new TcpProxy(target, isWebSocket);
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    const bound = proxy.#server.address();
    if (bound === null || typeof bound === 'string') throw new Error('the proxy has no port');
    proxy.#address = `http://127.0.0.1:${bound.port}`;
    return proxy;
  }

  get address(): string {
    return this.#address;
  }

  /** Stops forwarding in both directions without closing. New connections are accepted and stalled, too. */
  stall(): void {
    this.#stalled = true;
    for (const link of this.#links) link.pause();
  }

  resume(): void {
    this.#stalled = false;
    for (const link of this.#links) link.resume();
  }

  cut(): void {
    for (const link of [...this.#links]) link.destroy();
  }

  /** Delays all data by this time, in milliseconds. */
  delay(ms: number): void {
    this.#delayMs = ms;
  }

  /** Duplicates the next binary WebSocket messages of a direction. */
  duplicate(direction: Direction, messages: number): void {
    this.#duplicates[direction] = messages;
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #link(client: Socket): void {
    const upstream = connect(Number(this.#target.port), this.#target.hostname);
    const split = (): Split => {
      const frames = new WebSocketFrames();
      return this.#isWebSocket ? (data) => frames.split(data) : (data) => [{ bytes: data, binary: false }];
    };
    const link = new Link(client, upstream, (direction, chunk) => this.#pass(direction, chunk), split);
    this.#links.add(link);
    link.onEnd(() => this.#links.delete(link));
    if (this.#stalled) link.pause();
  }

  /** Bytes to deliver for a received chunk, and the delay of the delivery. */
  #pass(direction: Direction, chunk: Chunk): { bytes: Buffer[]; delayMs: number } {
    this.bytes[direction] += chunk.bytes.length;
    const isDuplicated = chunk.binary && this.#duplicates[direction] > 0;
    if (isDuplicated) {
      this.#duplicates[direction]--;
      this.duplicated++;
    }
    return { bytes: isDuplicated ? [chunk.bytes, chunk.bytes] : [chunk.bytes], delayMs: this.#delayMs };
  }
}

type Pass = (direction: Direction, chunk: Chunk) => { bytes: Buffer[]; delayMs: number };
type Split = (data: Buffer) => readonly Chunk[];

class Link {
  readonly #ends: readonly [Socket, Socket];
  #onEnd: () => void = () => {};
  #paused = false;

  constructor(client: Socket, upstream: Socket, pass: Pass, split: () => Split) {
    this.#ends = [client, upstream];
    for (const socket of this.#ends) {
      socket.setNoDelay(true);
      socket.on('error', () => {});
      socket.on('close', () => {
        // While stalled, a close of one side is not forwarded to the other.
        if (!this.#paused) this.destroy();
      });
    }
    this.#forward(client, upstream, 'up', pass, split());
    this.#forward(upstream, client, 'down', pass, split());
  }

  onEnd(listener: () => void): void {
    this.#onEnd = listener;
  }

  pause(): void {
    this.#paused = true;
    for (const socket of this.#ends) socket.pause();
  }

  resume(): void {
    this.#paused = false;
    if (this.#ends.some((socket) => socket.destroyed)) this.destroy();
    for (const socket of this.#ends) socket.resume();
  }

  destroy(): void {
    for (const socket of this.#ends) socket.destroy();
    this.#onEnd();
  }

  #forward(from: Socket, to: Socket, direction: Direction, pass: Pass, split: Split): void {
    let due = Promise.resolve();
    from.on('data', (data: Buffer) => {
      for (const chunk of split(data)) {
        const { bytes, delayMs } = pass(direction, chunk);
        const deliver = (): void => {
          for (const part of bytes) if (!to.destroyed && !to.write(part)) from.pause();
        };
        if (delayMs === 0) deliver();
        else {
          const at = new Promise<void>((resolve) => setTimeout(resolve, delayMs));
          // Delayed chunks stay in order.
          due = Promise.all([due, at]).then(deliver);
        }
      }
    });
    to.on('drain', () => {
      if (!this.#paused) from.resume();
    });
    from.on('end', () => void due.then(() => to.end()));
  }
}

interface Chunk {
  readonly bytes: Buffer;
  /** Whether the chunk is exactly one binary frame. */
  readonly binary: boolean;
}

const BINARY_WITH_FIN = 0x82;
const END_OF_HEAD = '\r\n\r\n';

/** Splits the bytes of one direction into WebSocket frames (RFC 6455 section 5.2). */
class WebSocketFrames {
  #isInHead = true;
  #rest: Buffer = Buffer.alloc(0);

  /** Returns the complete frames. Bytes of an incomplete frame wait for the next call. The HTTP head is one chunk. */
  split(data: Buffer): Chunk[] {
    const chunks: Chunk[] = [];
    let bytes = this.#rest.length === 0 ? data : Buffer.concat([this.#rest, data]);
    if (this.#isInHead) {
      const end = bytes.indexOf(END_OF_HEAD);
      if (end < 0) {
        this.#rest = bytes;
        return [];
      }
      this.#isInHead = false;
      chunks.push({ bytes: bytes.subarray(0, end + END_OF_HEAD.length), binary: false });
      bytes = bytes.subarray(end + END_OF_HEAD.length);
    }
    for (let length = frameLength(bytes); length !== null && length <= bytes.length; length = frameLength(bytes)) {
      chunks.push({ bytes: bytes.subarray(0, length), binary: bytes[0] === BINARY_WITH_FIN });
      bytes = bytes.subarray(length);
    }
    this.#rest = bytes;
    return chunks;
  }
}

/** Length of the frame that begins here, header included; null while unknown. */
function frameLength(bytes: Buffer): number | null {
  if (bytes.length < 2) return null;
  const second = bytes[1] as number;
  const mask = second & 0x80 ? 4 : 0;
  const short = second & 0x7f;
  if (short < 126) return 2 + mask + short;
  if (short === 126) return bytes.length < 4 ? null : 4 + mask + bytes.readUInt16BE(2);
  return bytes.length < 10 ? null : 10 + mask + Number(bytes.readBigUInt64BE(2));
}
