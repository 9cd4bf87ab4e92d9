/**
 * `GET /v1/images/files/{file}`: serves a generated image until its URL expires, with range requests (RFC 9110 section 14).
 *
 * The URL is the only credential, so the headers forbid shared caches to store an image.
 */
import { apiError, documentedErrors, IMAGE_CONTENT_TYPES } from '@inference/formats';
import type { FastifyInstance, FastifyReply } from 'fastify';
import Type from 'typebox';
import type { FoundImage, ImageStore } from '../../images/image-store.js';
import type { Metrics } from '../../telemetry/metrics.js';
import { NO_CREDENTIALS, pathParams } from '../plugins/route-schemas.js';
import { sendError } from '../plugins/send-error.js';

export const IMAGE_FILES_PATH = '/v1/images/files';

interface ImageFileRoutes {
  readonly store: Pick<ImageStore, 'find'>;
  readonly metrics: Pick<Metrics, 'imageFetched'>;
  readonly now: () => number;
}

/** For errors: a URL exists before its image, so its 404 must not be cached. */
const NO_STORE = { 'cache-control': 'no-store' };

const IMAGE_CONTENT = Object.fromEntries(Object.values(IMAGE_CONTENT_TYPES).map((type) => [type, { schema: {} }]));

const NO_IMAGE = 'There is no such image.';
const EXPIRED = 'This image has expired.';
const schema = {
  summary: 'An image until it expires. The URL alone gives access. Ranges are supported.',
  tags: ['Inference'],
  security: NO_CREDENTIALS,
  params: pathParams('file'),
  headers: Type.Object({ Range: Type.Optional(Type.String()) }),
  response: {
    200: { description: 'The image.', content: IMAGE_CONTENT },
    206: { description: 'The requested range of the image.', content: IMAGE_CONTENT },
    304: { description: 'The image has not changed.', type: 'null' },
    ...documentedErrors(['not_found', 'gone', 'range_not_satisfiable'], 'OpenAiError', {
      not_found: { message: NO_IMAGE },
      gone: { message: EXPIRED },
    }),
  },
};

export function addImageFiles(server: FastifyInstance, { store, metrics, now }: ImageFileRoutes): void {
  server.get<{ Params: { file: string } }>(
    `${IMAGE_FILES_PATH}/:file`,
    { schema, onRequest: server.rateLimits.publicRoutes },
    async (request, reply) => {
      const image = await store.find(request.params.file);
      metrics.imageFetched(image.kind);
      reply.headers({
        'x-content-type-options': 'nosniff',
        'content-security-policy': "default-src 'none'; sandbox",
        'referrer-policy': 'no-referrer',
      });
      switch (image.kind) {
        case 'found':
          return sendImage(reply, image, now());
        case 'gone':
          sendError(reply.headers(NO_STORE), apiError('gone', { message: EXPIRED }));
          return reply;
        case 'unknown':
          sendError(reply.headers(NO_STORE), apiError('not_found', { message: NO_IMAGE }));
          return reply;
        default:
          return image satisfies never;
      }
    },
  );
}

function sendImage(reply: FastifyReply, image: FoundImage & { kind: 'found' }, now: number): FastifyReply {
  const { bytes, fileType, expiresAt, imageId } = image;
  const { headers } = reply.request;
  // The image at a URL never changes, so its id can be the entity tag.
  const tag = `"${imageId.slice(0, 32)}"`;
  reply.headers({
    'cache-control': `private, max-age=${Math.max(0, Math.floor((expiresAt - now) / 1000))}, immutable`,
    'cross-origin-resource-policy': 'cross-origin',
    'accept-ranges': 'bytes',
    etag: tag,
  });
  if (matchesEntityTag(headers['if-none-match'], tag)) return reply.code(304).send();
  // `If-Range` (RFC 9110 section 13.1.5): if the client's copy differs, the whole image is sent.
  const condition = headers['if-range'];
  const range = condition === undefined || condition === tag ? parseRange(headers.range, bytes.length) : null;
  if (range === 'unsatisfiable') {
    sendError(reply.headers({ 'content-range': `bytes */${bytes.length}`, ...NO_STORE }), apiError('range_not_satisfiable'));
    return reply;
  }
  reply.header('content-type', IMAGE_CONTENT_TYPES[fileType]);
  if (range === null) return reply.header('content-length', bytes.length).send(bytes);
  const { first, last } = range;
  return reply
    .code(206)
    .headers({ 'content-range': `bytes ${first}-${last}/${bytes.length}`, 'content-length': last - first + 1 })
    .send(bytes.subarray(first, last + 1));
}

/** Whether `If-None-Match` contains this tag (RFC 9110 section 13.1.2). */
function matchesEntityTag(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false;
  return header.trim() === '*' || header.split(',').some((one) => one.trim().replace(/^W\//, '') === tag);
}

interface ByteRange {
  /** Offsets of the first and the last byte. */
  readonly first: number;
  readonly last: number;
}

const ONE_RANGE = /^bytes=(?:(\d{1,15})-(\d{1,15})?|-(\d{1,15}))$/i;

/** Parses `Range` (RFC 9110 section 14.1.2). Returns null, for the whole body, if the header is absent, invalid or unsupported. */
export function parseRange(header: string | undefined, length: number): ByteRange | 'unsatisfiable' | null {
  const [matched, from, to, suffix] = ONE_RANGE.exec(header?.trim() ?? '') ?? [];
  if (matched === undefined) return null;
  if (suffix !== undefined) {
    const bytes = Math.min(Number(suffix), length);
    return bytes === 0 ? 'unsatisfiable' : { first: length - bytes, last: length - 1 };
  }
  const first = Number(from);
  if (to !== undefined && Number(to) < first) return null;
  if (first >= length) return 'unsatisfiable';
  return { first, last: to === undefined ? length - 1 : Math.min(Number(to), length - 1) };
}
