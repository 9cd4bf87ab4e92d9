/** Path of a control socket: in the data directory, or in the user's temporary folder if the path is too long. */
import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

const CONTROL_SOCKET = 'control.sock';

/** Maximum bytes of a socket path. With the terminating zero, macOS permits 104 and Linux 108 (unix(4), unix(7)). */
const MAX_PATH_BYTES = 103;

/** Path of a socket by its file name. A data directory has several, such as the supervisor's. */
export function controlPath(dataDir: string, socket = CONTROL_SOCKET): string {
  const near = join(dataDir, socket);
  if (Buffer.byteLength(near) <= MAX_PATH_BYTES) return near;
  const name = createHash('sha256').update(dataDir).digest('hex').slice(0, 24);
  return join(tmpdir(), `inference-${name}`, `${socket.charAt(0)}.sock`);
}

/** Creates the socket's folder with mode 0700. Throws an Error if the folder belongs to another user than `uid`. */
export function makeControlFolder(path: string, uid: number | undefined = process.getuid?.()): void {
  const folder = dirname(path);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (uid === undefined) return;
  const found = lstatSync(folder);
  // systemd's StateDirectory of a DynamicUser is a link of root. Any user can make a link in the temporary folder.
  const isTrusted = found.uid === uid || (found.isSymbolicLink() && found.uid === 0);
  if (!isTrusted || statSync(folder).uid !== uid) throw new Error(`the folder ${folder} belongs to another user`);
}
