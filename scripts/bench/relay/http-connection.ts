/** `HttpConnection`: minimal HTTP/1.1 client for the relay bench. Parses only what its servers send, to save processor time. */
import { connect, type Socket } from 'node:net';

export interface Target {
  readonly port: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Bytes of a POST request. */
export function postRequest({ port, path, headers }: Target, body: string): Buffer {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const length = Buffer.byteLength(body);
  return Buffer.from(
    `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n${lines.join('')}\r\n${body}`,
  );
}

type State = 'idle' | 'head' | 'sized' | 'chunk_size' | 'chunk' | 'chunk_end' | 'trailer';

interface Exchange {
  readonly onBody: (part: Buffer) => void;
  readonly resolve: (status: number) => void;
  readonly reject: (error: Error) => void;
}

export class HttpConnection {
  readonly #socket: Socket;
  #state: State = 'idle';
  #exchange: Exchange | null = null;
  /** Bytes of an incomplete line or head. */
  #rest = '';
  #status = 0;
  #left = 0;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (data) => this.#read(data));
    const end = (error?: Error): void => this.#exchange?.reject(error ?? new Error('the connection ended within an answer'));
    socket.on('error', end);
    socket.on('close', () => end());
  }

  static open(port: number): Promise<HttpConnection> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1');
      socket.once('error', reject);
      socket.once('connect', () => {
        socket.off('error', reject);
        resolve(new HttpConnection(socket));
      });
    });
  }

  /** Resolves to the status of a complete response. Rejects when the connection ends first. One request at a time. */
  post(request: Buffer, onBody: (part: Buffer) => void): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#state = 'head';
      this.#exchange = { onBody, resolve, reject };
      this.#socket.write(request);
    });
  }

  close(): void {
    this.#exchange = null;
    this.#socket.destroy();
  }

  #read(data: Buffer): void {
    let at = 0;
    while (at < data.length && this.#state !== 'idle') {
      if (this.#state === 'sized' || this.#state === 'chunk') {
        const part = data.subarray(at, at + this.#left);
        this.#exchange?.onBody(part);
        at += part.length;
        this.#left -= part.length;
        if (this.#left > 0) return;
        if (this.#state === 'chunk') this.#state = 'chunk_end';
        else this.#finish();
        continue;
      }
      const end = data.indexOf(0x0a, at);
      this.#rest += data.toString('latin1', at, end === -1 ? data.length : end + 1);
      if (end === -1) return;
      at = end + 1;
      // Response headers are collected until their end; all other parts are handled line by line.
      if (this.#state === 'head' && !this.#rest.endsWith('\r\n\r\n')) continue;
      const text = this.#rest;
      this.#rest = '';
      this.#line(text);
    }
  }

  #line(text: string): void {
    switch (this.#state) {
      case 'head': {
        this.#status = Number(text.slice(9, 12));
        const length = /\r\ncontent-length: *(\d+)/i.exec(text);
        this.#left = Number(length?.[1] ?? 0);
        this.#state = length === null ? 'chunk_size' : 'sized';
        if (length !== null && this.#left === 0) this.#finish();
        return;
      }
      case 'chunk_size':
        this.#left = Number.parseInt(text, 16);
        this.#state = this.#left === 0 ? 'trailer' : 'chunk';
        return;
      case 'chunk_end':
        this.#state = 'chunk_size';
        return;
      case 'trailer':
        if (text === '\r\n') this.#finish();
        return;
      default:
    }
  }

  #finish(): void {
    this.#state = 'idle';
    const exchange = this.#exchange;
    this.#exchange = null;
    exchange?.resolve(this.#status);
  }
}
