/**
 * `fetchImage` and `serveImage`: transfer stored image files between coordinators.
 *
 * A client may fetch an image from any coordinator. `ImageStore` encrypts each file with a key that only the image's URL contains.
 */
import type { ImageStore } from '../images/image-store.js';
import { firstFound } from './cluster-views.js';
import type { Peer, PeerStream } from './peer.js';
import { readBody, sendBody } from './stream-body.js';

const MAX_IMAGE_BYTES = 256 * 1024 * 1024;
const MAX_NAME_CHARS = 128;

/** Requests the encrypted file of an image from all peers. Null: no peer has the file and answers in time. */
export function fetchImage(peers: readonly Peer[], name: string): Promise<Uint8Array | null> {
  return firstFound(peers, (peer, signal) => readBody(peer.openStream('image', Buffer.from(name)), MAX_IMAGE_BYTES, signal));
}

/** Serves a stream of kind `image`, whose header is the name of the file. */
export async function serveImage(store: Pick<ImageStore, 'readStored'>, stream: PeerStream, header: Uint8Array): Promise<void> {
  // No file has an empty name.
  const name = header.length > MAX_NAME_CHARS ? '' : Buffer.from(header).toString('latin1');
  const file = await store.readStored(name);
  if (file === null) stream.abort('not_found');
  else await sendBody(stream, file);
}
