/**
 * Where the daemon of a data directory listens for its owner's commands: a socket in that directory, or, where its path would be
 * longer than the system takes, in a folder of this user's own named after it.
 */
import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

export const CONTROL_SOCKET = 'control.sock';

/** Bytes of a socket's path, its end included: 104 on a Mac, 108 on Linux (unix(4), unix(7)). */
const MAX_PATH_BYTES = 103;

/** `socket`: its name; a data directory may have others than the daemon's. */
export function controlPath(dataDir: string, socket = CONTROL_SOCKET): string {
  const near = join(dataDir, socket);
  if (Buffer.byteLength(near) <= MAX_PATH_BYTES) return near;
  const name = createHash('sha256').update(dataDir).digest('hex').slice(0, 24);
  return join(tmpdir(), `inference-${name}`, `${socket.charAt(0)}.sock`);
}

/** Makes the folder of the socket, readable by this user alone. Throws an Error where it is another user's. */
export function makeControlFolder(path: string): void {
  const folder = dirname(path);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { uid } = lstatSync(folder);
  if (process.getuid !== undefined && uid !== process.getuid()) throw new Error(`the folder ${folder} belongs to another user`);
}
