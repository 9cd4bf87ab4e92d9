/** Release feed and files of a coordinator: signed releases, and broken or hostile variants. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Release, ReleasePlatform } from '@inference/protocol';
import { archive } from '../../../../scripts/release/archive.js';
import { publicKeyOf, signRelease } from '../../../../scripts/release/keys.js';
import { measure } from '../../../../scripts/release/pack.js';
import { addressOf, closeServer, listenLocally } from '../../../../test/support/local-server.js';

export const PLATFORM = `${process.platform}-${process.arch}` as ReleasePlatform;

/** Agent that prints its version and runs the test's code for `serve`. */
export const AGENT = (version: string, serve: string): string => `#!/usr/bin/env node
if (process.argv[2] === '--version') console.log('${version}');
else if (process.argv[2] === 'serve') { ${serve} }
else { console.error('what?'); process.exit(2); }
`;

/** Replaces the response to one request; true if handled. */
export type Fault = (request: IncomingMessage, response: ServerResponse, body: Buffer) => boolean;

export class ReleaseServer {
  readonly #files = new Map<string, Buffer>();
  readonly #releases = new Map<string, string>();
  readonly #server = createServer((request, response) => this.#answer(request, response));
  readonly #folder = mkdtempSync(join(tmpdir(), 'releases-'));
  readonly #key: KeyObject = generateKeyPairSync('ed25519').privateKey;
  /** Of requests for files. */
  fault: Fault = () => false;
  /** Header of a rollout in the next answers; null: none. */
  notice: string | null = null;
  /** Address and authorization of the last question for a release. */
  asked = { url: '', authorization: '' };
  /** Bytes of files sent. */
  sent = 0;

  static async listen(): Promise<ReleaseServer> {
    const server = new ReleaseServer();
    await listenLocally(server.#server);
    return server;
  }

  get url(): string {
    return addressOf(this.#server);
  }

  get publicKey(): string {
    return publicKeyOf(this.#key);
  }

  async close(): Promise<void> {
    await closeServer(this.#server);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  putFile(path: string, body: Buffer): void {
    this.#files.set(path, body);
  }

  /** Packs files (path below `package/` and text) as an archive. */
  async pack(files: Readonly<Record<string, string | Buffer>>): Promise<string> {
    const folder = mkdtempSync(join(this.#folder, 'package-'));
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
      chmodSync(join(folder, path), 0o755);
    }
    const file = `${folder}.tgz`;
    await archive(folder, file);
    return file;
  }

  /** Releases a small agent. `filler`: bytes that enlarge its archive. */
  async release(version: string, serve = 'setInterval(() => {}, 1000);', change: Partial<Release> = {}, filler = 0): Promise<Release> {
    const file = await this.pack({
      'package.json': JSON.stringify({ name: 'inference-provider', version, type: 'module' }),
      'bin/inference-provider.js': AGENT(version, serve),
      ...(filler === 0 ? {} : { filler: noise(filler) }),
    });
    return await this.releaseFile(version, file, change);
  }

  /** Signs and offers an archive. The members of `change` are signed too. */
  async releaseFile(version: string, file: string, change: Partial<Release> = {}): Promise<Release> {
    const path = `/files/${version}.tgz`;
    this.putFile(path, readFileSync(file));
    const facts = {
      version,
      platform: PLATFORM,
      url: `${this.url}${path}`,
      ...(await measure(file)),
      node: '20.19.0',
      notes: `New in ${version}`,
    };
    const release = signRelease({ ...facts, ...change }, this.#key);
    this.offer(release, version);
    return release;
  }

  /** Offers an arbitrary body, as this version and as the newest. */
  offer(body: unknown, version: string): void {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    this.#releases.set(version, text).set('latest', text);
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const [path = ''] = (request.url ?? '').split('?');
    const asked = /^\/v1\/agent\/releases\/([^/]+)$/.exec(path)?.[1];
    if (asked !== undefined) {
      const text = this.#releases.get(asked);
      this.asked = { url: request.url ?? '', authorization: request.headers.authorization ?? '' };
      if (this.notice !== null) response.setHeader('inference-rollout', this.notice);
      response.writeHead(text === undefined ? 404 : 200, { 'content-type': 'application/json' }).end(text ?? '{}');
      return;
    }
    const body = this.#files.get(path);
    if (body === undefined) response.writeHead(404).end();
    else if (!this.fault(request, response, body)) this.send(request, response, body);
  }

  /** Correct response, or only `cut` bytes before the connection breaks. */
  send(request: IncomingMessage, response: ServerResponse, body: Buffer, cut = Number.POSITIVE_INFINITY): void {
    const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '');
    const start = range === null ? 0 : Number(range[1]);
    const end = range === null || range[2] === '' ? body.length - 1 : Math.min(Number(range[2]), body.length - 1);
    if (start >= body.length) {
      response.writeHead(416).end();
      return;
    }
    const headers = {
      'content-length': end - start + 1,
      ...(range === null ? {} : { 'content-range': `bytes ${start}-${end}/${body.length}` }),
    };
    response.writeHead(range === null ? 200 : 206, headers);
    const part = body.subarray(start, end + 1).subarray(0, cut);
    this.sent += part.length;
    if (part.length === end - start + 1) response.end(part);
    else response.write(part, () => response.destroy());
  }
}

/** Deterministic incompressible bytes. */
function noise(bytes: number): Buffer {
  const out = Buffer.alloc(bytes);
  let state = 1;
  for (let index = 0; index < bytes; index++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    out[index] = state >>> 23;
  }
  return out;
}
