/** Images at URLs in requests: protection against server-side request forgery, and a request whose image is fetched. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RequestError } from '@inference/formats';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ImageFetcher, isPublicAddress } from '../../../src/inference/request/image-fetcher.js';

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAMAAACqqpYoAAAAA1BMVEXIKAqFTr2WAAAACXBIWXMAAAPoAAAD6AG1e1JrAAAAC0lEQVQImWNggAAAAAgAAa9T6iIAAAAASUVORK5CYII=',
  'base64',
);

let folder: string;
let server: Server;
let origin: string;
let ca: string;
const paths: string[] = [];

function answer({ url = '', headers }: IncomingMessage, response: ServerResponse): void {
  paths.push(`${url} ${headers.authorization ?? headers.cookie ?? ''}`.trim());
  const redirect = (location: string): void => void response.writeHead(302, { location }).end();
  const [, path] = url.split('/');
  switch (path) {
    case 'image':
      response.end(PNG);
      break;
    case 'loop':
      redirect('/loop');
      break;
    case 'once':
      redirect('/image');
      break;
    case 'plain':
      redirect('http://example.com/image');
      break;
    case 'inside':
      redirect(`https://10.0.0.1:${new URL(origin).port}/image`);
      break;
    case 'endless': {
      const write = (): void => {
        while (response.write(Buffer.alloc(65_536)));
        response.once('drain', write);
      };
      write();
      break;
    }
    case 'text':
      response.end('<html>');
      break;
    case 'silent':
      break;
    case 'upgrade':
      response.writeHead(101, { connection: 'upgrade', upgrade: 'other' }).end();
      break;
    default:
      response.writeHead(404).end();
  }
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'image-fetcher-'));
  const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')];
  const options = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj', '/CN=localhost'];
  const names = ['-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'];
  execFileSync('openssl', ['req', '-x509', ...options, ...names, '-keyout', key, '-out', certificate], { stdio: 'pipe' });
  ca = readFileSync(certificate, 'utf8');
  server = createServer({ key: readFileSync(key), cert: ca }, answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `https://localhost:${(server.address() as AddressInfo).port}`;
});

afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  rmSync(folder, { recursive: true, force: true });
});

const LOCAL = ['127.0.0.1'];

function fetcher(options: ConstructorParameters<typeof ImageFetcher>[0] = {}): ImageFetcher {
  const isAllowed = (address: string): boolean => address === '127.0.0.1' || address === '::1';
  return new ImageFetcher({ isAllowed, resolve: async () => LOCAL, port: new URL(origin).port, ca, ...options });
}

const terms = { accountId: 'a', claim: () => true, signal: new AbortController().signal };
const at = (url: string, field = 'messages[0].content[1]') => ({ url, field });

async function failureOf(images: ImageFetcher, url: string, more: Partial<typeof terms> = {}): Promise<RequestError> {
  const error = await images.fetchAll([at(url)], { ...terms, ...more }).catch((fault: unknown) => fault);
  if (error instanceof RequestError) return error;
  throw new Error('the image was fetched', { cause: error });
}

describe('the fetcher', () => {
  it('returns images, also after a redirect, and counts their bytes', async () => {
    let claimed = 0;
    const claim = (bytes: number): boolean => {
      claimed += bytes;
      return true;
    };
    const urls = [at(`${origin}/image`), at(`${origin}/once`)];
    const images = await fetcher().fetchAll(urls, { ...terms, claim });
    expect([...images]).toEqual(
      urls.map(({ url }) => [url, { mediaType: 'image/png', bytes: PNG, pixels: 6, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) }]),
    );
    expect(claimed).toBe(2 * PNG.length);
    expect(paths.filter((path) => path === '/image')).toHaveLength(2);
  });

  it.each([
    ['endless redirects', '/loop', /redirects more than 3 times/],
    ['a redirect to http', '/plain', /each redirect, must begin with https and use the port/],
    ['a redirect into a private network', '/inside', /address that is not public/],
    ['a page', '/text', /does not lead to a PNG, JPEG, WebP or GIF/],
    ['a change of the protocol', '/upgrade', /could not be fetched/],
    ['a missing file', '/missing', /answered with status 404/],
    ['more bytes than allowed', '/endless', /image exceeds the maximum of 5 MiB/],
  ])('refuses %s', async (_what, path, message) => {
    const error = await failureOf(fetcher(), origin + path);
    expect(error.message).toMatch(message);
    expect([error.code, error.param]).toEqual(['invalid_request', 'messages[0].content[1]']);
  });

  it('refuses names and addresses that are not public, before any connection', async () => {
    const before = paths.length;
    const resolve = async (): Promise<readonly string[]> => ['93.184.215.14', ...LOCAL];
    const guarded = new ImageFetcher({ resolve, port: new URL(origin).port, ca });
    for (const host of ['localhost', '127.0.0.1', '[::1]', '2130706433', '0x7f.1']) {
      expect((await failureOf(guarded, `https://${host}:${new URL(origin).port}/image`)).message).toMatch(/not public/);
    }
    expect(paths).toHaveLength(before);
    for (const url of ['https://user@example.com/a', 'https://example.com:8443/a']) {
      expect((await failureOf(new ImageFetcher(), url)).message).toMatch(/is not valid|the port 443/);
    }
  });

  it('gives up on slow servers, and on memory that is not free', async () => {
    expect((await failureOf(fetcher({ totalMs: 50 }), `${origin}/silent`)).message).toMatch(/not fetched in time/);
    expect((await failureOf(fetcher(), `${origin}/image`, { claim: () => false })).code).toBe('overloaded');
  });

  it('gives up on names that do not resolve, and ends their queries', async () => {
    let isEnded = false;
    const resolve = (_host: string, signal: AbortSignal): Promise<never> =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          isEnded = true;
          reject(signal.reason);
        });
      });
    expect((await failureOf(fetcher({ resolve, totalMs: 50 }), `${origin}/image`)).message).toMatch(/not fetched in time/);
    expect(isEnded).toBe(true);
    expect((await failureOf(fetcher({ resolve: async () => [] }), `${origin}/image`)).message).toMatch(/could not be fetched/);
  });

  it('bounds the rate of an account', async () => {
    const images = fetcher();
    const many = Array.from({ length: 121 }, () => at(`${origin}/image`));
    await expect(images.fetchAll(many, terms)).rejects.toMatchObject({ code: 'rate_limit_exceeded' });
    expect((await failureOf(images, `${origin}/image`)).code).toBe('rate_limit_exceeded');
    await images.fetchAll([at(`${origin}/image`)], { ...terms, accountId: 'b' });
  });
});

it.each([
  ['93.184.215.14', true],
  ['2606:2800:21f::1', true],
  ['10.1.2.3', false],
  ['100.64.0.1', false],
  ['169.254.169.254', false],
  ['192.168.1.1', false],
  ['0.0.0.0', false],
  ['255.255.255.255', false],
  ['::', false],
  ['::ffff:10.0.0.1', false],
  ['::ffff:93.184.215.14', true],
  ['64:ff9b::a00:1', false],
  ['2002:a00:1::', false],
  ['fe80::1%eth0', false],
  ['fd00::1', false],
  ['fec0::1', false],
  ['::7f00:1', false],
  ['64:ff9b:1::a00:1', false],
  ['ff02::1', false],
  ['example.com', false],
])('the address %s counts as public: %s', (address, isPublic) => {
  expect(isPublicAddress(address)).toBe(isPublic);
});
