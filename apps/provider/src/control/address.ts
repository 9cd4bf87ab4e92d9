/** Path of a data directory's control socket: inside, or in the user's temporary folder if the path is too long. */
import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

const CONTROL_SOCKET = 'control.sock';

/** Maximum bytes of a socket path with its terminating zero: 104 on macOS, 108 on Linux (unix(4), unix(7)). */
const MAX_PATH_BYTES = 103;

/** `socket`: file name. A data directory has several sockets, such as the supervisor's. */
export function controlPath(dataDir: string, socket = CONTROL_SOCKET): string {
  const near = join(dataDir, socket);
  if (Buffer.byteLength(near) <= MAX_PATH_BYTES) return near;
  const name = createHash('sha256').update(dataDir).digest('hex').slice(0, 24);
  return join(tmpdir(), `inference-${name}`, `${socket.charAt(0)}.sock`);
}

/** Creates the socket's folder with mode 0700. Throws an Error if the folder belongs to another user. */
export function makeControlFolder(path: string): void {
  const folder = dirname(path);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { uid } = lstatSync(folder);
  if (process.getuid !== undefined && uid !== process.getuid()) throw new Error(`the folder ${folder} belongs to another user`);
}
