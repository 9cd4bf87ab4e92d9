/** `openConsoleFiles` finds the built console (a web application), serves its files, and sends its pages. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import fastifyStatic from '@fastify/static';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import Type from 'typebox';
import { Compile } from 'typebox/compile';
import { StartupError } from '../../config/startup-error.js';
import { pathOf } from '../plugins/request-path.js';

export interface ConsoleFiles {
  /** Registers routes for files and pages, except `/`, which also answers API clients (system-routes.ts). */
  addTo(server: FastifyInstance): Promise<void>;
  /** Sends the console's HTML. */
  sendPage(reply: FastifyReply): FastifyReply;
  /** Sends the HTML with status 404 to a browser. Returns false, and sends nothing, for programs and API paths. */
  sendNotFoundPage(request: FastifyRequest, reply: FastifyReply): boolean;
}

const PAGE = 'index.html';
/** File of the console's build with the paths of all pages, in the syntax of the console's router. */
const PAGE_LIST = 'pages.json';
const pageList = Compile(Type.Array(Type.String({ pattern: '^/[a-z0-9/:-]*$' }), { minItems: 1 }));

/** Pages with their own file are served without the extension: `docs/clients.html` at `/docs/clients`. */
const HTML = /\.html$/;
const PARAMETER = /:[^/]+/g;
/** Files with a content hash in their name. */
const HASHED = /[/\\]assets[/\\]/;
const IMMUTABLE = 'public, max-age=31536000, immutable';
/** Cached, but revalidated for each use. */
const REVALIDATE = 'no-cache';
/** Paths for programs, which get JSON errors. Under other paths, people may have mistyped an address. */
const API_PATHS = /^\/(?:v1|console|admin\/v1|oauth|\.well-known|assets|mdm|acme)(?:\/|$)/;

/** Content-Security-Policy (level 3): own origin only, nothing inline, no framing. Images also from data and blob URLs. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "connect-src 'self'",
  "font-src 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ');

const HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), microphone=(), geolocation=(), payment=(), usb=(), browsing-topics=()',
};

/**
 * Opens the built console in `directory`, or the bundled one (null). Returns null if none is bundled. Throws {@link StartupError} if
 * `directory` has no build.
 */
export function openConsoleFiles(directory: string | null): ConsoleFiles | null {
  const root = resolve(directory ?? bundledConsole());
  if (!existsSync(resolve(root, PAGE))) {
    if (directory === null) return null;
    throw new StartupError(`CONSOLE_DIR: there is no built console in ${root}. Run npm run build.`);
  }
  const pages = readPages(resolve(root, PAGE_LIST));
  const sendPage = (reply: FastifyReply): FastifyReply => reply.sendFile(PAGE);
  return {
    sendPage,
    async addTo(server) {
      await server.register(fastifyStatic, {
        root,
        serve: false,
        preCompressed: true,
        cacheControl: false,
        setHeaders: (response, path) => {
          for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
          response.setHeader('cache-control', HASHED.test(path) ? IMMUTABLE : REVALIDATE);
          // Shared caches must separate compressed copies, and the page from the JSON at `/`.
          response.setHeader('vary', path.endsWith('.html') ? 'accept, accept-encoding' : 'accept-encoding');
        },
      });
      const files = new Map(filesIn(root).map((file) => [`/${file.replace(HTML, '')}`, file]));
      const pagePatterns = new Set(
        pages.filter((path) => path !== '/' && !files.has(path)).map((path) => path.replace(PARAMETER, ':name')),
      );
      for (const pattern of new Set([...[...files.keys()].map(patternOf), ...pagePatterns])) {
        const isPage = pagePatterns.has(pattern);
        server.get(pattern, { config: { hasPath: (path) => isPage || files.has(path) } }, (request, reply) => {
          const file = files.get(decodeURIComponent(pathOf(request)));
          if (file !== undefined) return reply.sendFile(file);
          return isPage ? sendPage(reply) : reply.callNotFound();
        });
      }
    },
    sendNotFoundPage(request, reply) {
      if (request.method !== 'GET' || !acceptsHtml(request) || API_PATHS.test(pathOf(request))) return false;
      sendPage(reply.code(404));
      return true;
    },
  };
}

/** Whether a browser navigates to a page. Programs usually accept JSON or any type. */
export function acceptsHtml(request: FastifyRequest): boolean {
  return (request.headers.accept ?? '').includes('text/html');
}

/** Directory of the bundled console: inside the published package, or the build of the console's workspace in the repository. */
function bundledConsole(): string {
  const root = dirname(createRequire(import.meta.url).resolve('#package.json'));
  const packaged = resolve(root, 'console');
  return existsSync(packaged) ? packaged : resolve(root, '../console/dist');
}

/** Paths of the public files. Excludes compressed copies, which are served under the original name, and build metadata. */
function filesIn(root: string): string[] {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).replaceAll('\\', '/'))
    .filter((path) => !/\.(?:br|gz)$|(?:^|\/)\./.test(path) && path !== PAGE && path !== PAGE_LIST);
}

/** Route pattern of a file. Files of one folder share a pattern, because one route per file took a sixth of the start time. */
function patternOf(path: string): string {
  const folder = path.slice(0, path.lastIndexOf('/'));
  return folder === '' ? path : `${folder}/:name`;
}

function readPages(file: string): readonly string[] {
  try {
    return pageList.Parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch (error) {
    throw new StartupError(`${file} is no list of pages; build the console again.`, { cause: error });
  }
}
