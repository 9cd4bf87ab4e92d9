/** Serving of the web console: pages, files, JSON errors and security headers. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../../../../../test/support/temporary-directory.js';
import { StartupError } from '../../../src/config/startup-error.js';
import { openConsoleFiles } from '../../../src/routes/system/console-files.js';
import { type Harness, startHarness } from '../../support/harness.js';

const PAGE = '<!doctype html><title>the page</title>';
const GUIDE = '<!doctype html><title>the guide</title>';
const SCRIPT = `console.log('${'x'.repeat(2000)}')`;

let directory: string;
let harness: Harness;

beforeAll(async () => {
  directory = temporaryDirectory('console-files');
  mkdirSync(join(directory, 'assets'));
  mkdirSync(join(directory, '.vite'));
  mkdirSync(join(directory, 'providers'));
  writeFileSync(join(directory, 'index.html'), PAGE);
  writeFileSync(join(directory, 'first-paint.js'), '// theme');
  writeFileSync(join(directory, 'pages.json'), JSON.stringify(['/', '/providers', '/providers/:id']));
  writeFileSync(join(directory, '.vite/manifest.json'), '{}');
  writeFileSync(join(directory, 'providers/guide v1.html'), GUIDE);
  writeFileSync(join(directory, 'assets/index-abc.js'), SCRIPT);
  writeFileSync(join(directory, 'assets/index-abc.js.gz'), gzipSync(SCRIPT));
  harness = await startHarness({ config: { consoleDir: directory } });
});
afterAll(() => harness.close());

const get = (path: string, headers: Record<string, string> = {}): Promise<Response> => fetch(harness.url + path, { headers });
const browser = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

describe('the web console', () => {
  it.each(['/', '/providers', '/providers/abc?x=1'])('is the page at %s, revalidated each time', async (path) => {
    const response = await get(path, browser);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toMatch(/^text\/html/);
    expect(response.headers.get('cache-control')).toBe('no-cache');
    expect(response.headers.get('vary')).toBe('accept, accept-encoding');
    expect(await response.text()).toBe(PAGE);
  });

  it('still names the service to programs at /', async () => {
    const response = await get('/');
    expect(await response.json()).toEqual({ service: 'inference-gateway' });
    expect(response.headers.get('vary')).toMatch(/accept/i);
    expect((await fetch(`${harness.url}/`, { method: 'HEAD' })).status).toBe(200);
  });

  it('allows a page only its own files', async () => {
    const { headers } = await get('/', browser);
    const policy = headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain('unsafe');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('referrer-policy')).toBe('same-origin');
    expect(headers.get('cross-origin-opener-policy')).toBe('same-origin');
    expect(headers.get('permissions-policy')).toContain('camera=()');
  });

  it('serves hashed files as immutable, precompressed, and others with revalidation', async () => {
    const script = await get('/assets/index-abc.js', { 'accept-encoding': 'gzip' });
    expect(script.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    expect(script.headers.get('content-encoding')).toBe('gzip');
    expect(script.headers.get('vary')).toBe('accept-encoding');
    expect(script.headers.get('content-type')).toMatch(/javascript/);
    expect(await script.text()).toBe(SCRIPT);
    expect((await get('/first-paint.js')).headers.get('cache-control')).toBe('no-cache');
  });

  it('returns 404 with the page to browsers at unknown paths', async () => {
    const response = await get('/no/such/page', browser);
    expect(response.status).toBe(404);
    expect(await response.text()).toBe(PAGE);
    expect(response.headers.get('content-security-policy')).toContain("default-src 'none'");
  });

  it.each([
    '/v1/unheard-of',
    '/console/v1/unheard-of',
    '/admin/v1/unheard-of',
    '/assets/gone-123.js',
    '/.vite/manifest.json',
    '/index.html.gz',
  ])('never answers %s with the page to a program', async (path) => {
    const response = await get(path);
    expect(response.status).toBe(404);
    expect(await response.json()).toHaveProperty('error');
  });

  it.each(['/v1/unheard-of', '/console/v1/unheard-of', '/assets/gone-123.js'])('keeps the error of %s for browsers, too', async (path) => {
    const response = await get(path, browser);
    expect(response.status).toBe(404);
    expect(await response.json()).toHaveProperty('error');
  });

  it('does not serve files outside the folder', async () => {
    for (const path of ['/../package.json', '/assets/..%2f..%2fpackage.json', '/assets/%2e%2e/pages.json', '/pages.json', '/assets/']) {
      expect((await get(path)).status, path).toBeGreaterThanOrEqual(400);
    }
  });

  it('responds to other methods at a page as at every known path', async () => {
    const response = await fetch(`${harness.url}/providers`, { method: 'POST', body: '{}' });
    expect(response.status).toBe(405);
    expect(response.headers.get('allow')).toMatch(/GET/);
    expect((await fetch(`${harness.url}/assets/index-abc.js`, { method: 'POST', body: '{}' })).status).toBe(405);
    expect((await fetch(`${harness.url}/assets/gone-123.js`, { method: 'POST', body: '{}' })).status).toBe(404);
  });

  it('serves a file instead of the page that its address also matches', async () => {
    expect(await (await get('/providers/guide%20v1', browser)).text()).toBe(GUIDE);
  });
});

describe("the console's folder", () => {
  it('is refused at the start without a build', () => {
    expect(() => openConsoleFiles(join(directory, 'assets'))).toThrow(StartupError);
    expect(() => openConsoleFiles(join(directory, 'assets'))).toThrow(/CONSOLE_DIR/);
  });

  it('is refused with a broken list of pages', () => {
    const broken = temporaryDirectory('console-broken');
    writeFileSync(join(broken, 'index.html'), PAGE);
    writeFileSync(join(broken, 'pages.json'), '["no-slash"]');
    expect(() => openConsoleFiles(broken)).toThrow(/no list of pages/);
  });
});

describe('the session state', () => {
  it('is null with status 200 without a session', async () => {
    const response = await get('/console/v1/session');
    expect(response.status).toBe(200);
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(await response.json()).toEqual({ account: null, suspended: false });
  });
});
