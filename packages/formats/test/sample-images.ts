/** Small valid images of 3×2 pixels in base64, written by sharp, and changes to them. */
export const IMAGES = {
  'image/png':
    'iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAMAAACqqpYoAAAAA1BMVEXIKAqFTr2WAAAACXBIWXMAAAPoAAAD6AG1e1JrAAAAC0lEQVQImWNggAAAAAgAAa9T6iIAAAAASUVORK5CYII=',
  'image/jpeg':
    '/9j/2wBDACgcHiMeGSgjISMtKygwPGRBPDc3PHtYXUlkkYCZlo+AjIqgtObDoKrarYqMyP/L2u71////m8H////6/+b9//j/2wBDASstLTw1PHZBQXb4pYyl+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj/wAARCAACAAMDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAT/xAAUEAEAAAAAAAAAAAAAAAAAAAAA/8QAFAEBAAAAAAAAAAAAAAAAAAAABP/EABQRAQAAAAAAAAAAAAAAAAAAAAD/2gAMAwEAAhEDEQA/AJgBz3//2Q==',
  'image/webp': 'UklGRjIAAABXRUJQVlA4ICYAAABwAQCdASoDAAIAB0CWJaACdAFAAAD+4cN4NkinOX+rvsf89XAAAA==',
  'image/gif': 'R0lGODlhAwACAIAAAExpccgoCiH5BAUAAAAALAAAAAADAAIAAAICjF8AOw==',
} as const;
export const LOSSLESS_WEBP = 'UklGRh4AAABXRUJQVlA4TBEAAAAvAkAAAAdQlCJXof+BiOh/AAA=';
export const ANIMATED = {
  'image/gif':
    'R0lGODlhAgACAIAAAExpcQoKCiH/C05FVFNDQVBFMi4wAwEAAAAh+QQFCgAAACwAAAAAAgACAAACAoxTACH5BAUKAAAALAAAAAACAAIAgExpccjIyAICjFMAOw==',
  'image/webp':
    'UklGRogAAABXRUJQVlA4WAoAAAACAAAAAQAAAQAAQU5JTQYAAAD/////AABBTk1GKgAAAAAAAAAAAAEAAAEAAGQAAAJWUDhMEQAAAC8BQAAAB1CFKlSh/4GI6H8AAEFOTUYqAAAAAAAAAAAAAQAAAQAAZAAAAFZQOEwRAAAALwFAAAAHUOQiF7n/gYjofwAA',
} as const;

export const bytesOfBase64 = (base64: string): Buffer => Buffer.from(base64, 'base64');

/** A PNG whose header has these dimensions. */
export function resizedPng(width: number, height: number): Buffer {
  const bytes = bytesOfBase64(IMAGES['image/png']);
  bytes.writeUInt32BE(width, 16);
  bytes.writeUInt32BE(height, 20);
  return bytes;
}
