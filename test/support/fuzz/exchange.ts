/** Creates fuzzed requests, and sends each over its own socket, because an HTTP client would correct or refuse them. */
import { connect } from 'node:net';
import type { SeededRandom } from '../seeded-random.js';
import type { FuzzedPath } from './bodies.js';
import { bodiesOf, bodiesWithImages, type Json, PATHS } from './bodies.js';
import { MARKUP, mutated, randomBody } from './mutate.js';

export interface Target {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly model: string;
  /** An embedding model. Absent: requests for embeddings are refused. */
  readonly embeddingModel?: string;
  /** A model that reads images. Absent: no request has images. */
  readonly visionModel?: string;
}

export interface Fuzzed {
  readonly path: FuzzedPath;
  /** All bytes of the request. */
  readonly bytes: Buffer;
  /** False: the HTTP framing is broken, so the server may answer in a generic shape or hang up. */
  readonly validHttp: boolean;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

const CONTENT_TYPES = ['application/json', 'application/json; charset=utf-16', 'text/plain', 'multipart/form-data', '', MARKUP, 'a/b;c="'];
const QUERIES = [
  '',
  '?beta=true',
  '?beta=true&beta=false',
  '?%00',
  '?%ff=%zz',
  `?${MARKUP.replaceAll(' ', '')}`,
  `?${'a'.repeat(3000)}`,
  '?a[__proto__]=1',
];
const EXTRA_HEADERS: readonly (readonly [string, string])[] = [
  ['anthropic-version', '2026-10-21'],
  ['anthropic-version', MARKUP],
  ['anthropic-beta', 'a'.repeat(3000)],
  ['x-inference-nonce', 'not base64!'],
  ['x-inference-nonce', 'A'.repeat(43)],
  ['te', 'trailers'],
  ['accept-encoding', 'gzip, deflate, br, zstd'],
  ['content-encoding', 'gzip'],
  ['expect', '100-continue'],
  ['x-request-id', MARKUP],
  ['x-forwarded-for', '1.2.3.4, evil'],
  ['cookie', `session=${MARKUP}`],
  ['origin', 'http://evil.example'],
];

/** Creates a request to one of the paths, with a random mutation of body, headers or framing. */
export function fuzzRequest(target: Target, random: SeededRandom, paths: readonly FuzzedPath[] = PATHS): Fuzzed {
  const path = random.pick(paths);
  const body = random.happens(0.1) ? randomBody(random) : mutated(random.pick(bodiesFor(path, target)), random);
  const query = random.happens(0.15) ? random.pick(QUERIES) : '';
  const headers: [string, string][] = [
    ['host', new URL(target.baseUrl).host],
    ['connection', 'close'],
    ['content-type', random.happens(0.9) ? 'application/json' : random.pick(CONTENT_TYPES)],
    random.happens(0.5) ? ['authorization', `Bearer ${target.apiKey}`] : ['x-api-key', target.apiKey],
  ];
  for (let extra = random.below(3); extra > 0; extra--) headers.push([...random.pick(EXTRA_HEADERS)]);
  const head = `POST ${path}${query} HTTP/1.1\r\n${headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')}`;
  if (!random.happens(0.08)) {
    return { path, validHttp: true, bytes: Buffer.concat([Buffer.from(`${head}content-length: ${body.length}\r\n\r\n`), body]) };
  }
  return { path, validHttp: false, bytes: brokenFraming(head, body, random) };
}

/** Model for requests to this path without images. */
function modelFor(path: FuzzedPath, { model, embeddingModel = model }: Target): string {
  return path === '/v1/embeddings' ? embeddingModel : model;
}

/** Valid bodies for a path of this target. */
export function bodiesFor(path: FuzzedPath, target: Target): readonly Json[] {
  const { visionModel } = target;
  return [...bodiesOf(path, modelFor(path, target)), ...(visionModel === undefined ? [] : bodiesWithImages(path, visionModel))];
}

/** Bodies with a wrong length or wrong chunk sizes. */
function brokenFraming(head: string, body: Buffer, random: SeededRandom): Buffer {
  const size = body.length.toString(16);
  const chunked = `${head}transfer-encoding: chunked\r\n\r\n`;
  switch (random.below(6)) {
    case 0:
      return Buffer.concat([Buffer.from(`${chunked}zz\r\n`), body]);
    case 1:
      return Buffer.concat([Buffer.from(`${chunked}${size}\r\n`), body, Buffer.from('no line end')]);
    case 2:
      return Buffer.concat([Buffer.from(`${head}content-length: ${Math.max(0, body.length - 5)}\r\n\r\n`), body]);
    case 3:
      return Buffer.concat([Buffer.from(`${head}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n${size}\r\n`), body]);
    case 4:
      return Buffer.concat([Buffer.from(`${head}content-length: -1\r\n\r\n`), body]);
    default:
      return Buffer.concat([Buffer.from(`${chunked}${size}\r\n`), body, Buffer.from('\r\n0\r\nx-trailer: a\r\n\r\n')]);
  }
}

/** Sends the bytes and reads until the server closes. Null: closed without a response. Rejects after `limitMs`. */
export function exchange(baseUrl: string, bytes: Buffer, limitMs = 110_000): Promise<Answer | null> {
  const { hostname, port } = new URL(baseUrl);
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    const socket = connect(Number(port), hostname, () => socket.write(bytes));
    socket.setTimeout(limitMs, () => {
      socket.destroy();
      reject(new Error('no end of the answer came'));
    });
    socket.on('data', (part) => parts.push(part));
    // The server may hang up on invalid HTTP before the whole request was sent.
    socket.on('error', () => {});
    socket.on('close', () => resolve(parts.length === 0 ? null : parseAnswer(Buffer.concat(parts))));
  });
}

function parseAnswer(bytes: Buffer): Answer {
  const headEnd = bytes.indexOf('\r\n\r\n');
  const [statusLine, ...lines] = bytes.subarray(0, headEnd).toString('latin1').split('\r\n');
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine ?? '')?.[1]);
  // Interim response to `Expect: 100-continue`.
  if (status === 100) return parseAnswer(bytes.subarray(headEnd + 4));
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(':');
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
  }
  const rest = bytes.subarray(headEnd + 4);
  return { status, headers, body: headers['transfer-encoding'] === 'chunked' ? dechunk(rest) : rest };
}

function dechunk(bytes: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; ; ) {
    const lineEnd = bytes.indexOf('\r\n', at);
    const size = Number.parseInt(bytes.subarray(at, lineEnd).toString('latin1'), 16);
    if (!(size > 0)) return Buffer.concat(parts);
    parts.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 2 + size + 2;
  }
}
