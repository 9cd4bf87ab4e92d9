/** Serves encrypted image files to peers and requests them. Only the coordinator with the image's URL can decrypt. */
import type { ImageStore } from '../images/image-store.js';
import { firstFound } from './cluster-views.js';
import type { Peer, PeerStream } from './peer.js';
import { readBody, sendBody } from './stream-body.js';

/** Larger than every image that a store accepts. */
const MAX_IMAGE_BYTES = 256 * 1024 * 1024;
const MAX_NAME_CHARS = 128;

/** Encrypted file of an image, from a peer. Null: no peer has the file, or answers in time. */
export function fetchImage(peers: readonly Peer[], name: string): Promise<Uint8Array | null> {
  return firstFound(peers, (peer, signal) => readBody(peer.openStream('image', Buffer.from(name)), MAX_IMAGE_BYTES, signal));
}

/** Serves a stream of kind `image`, whose header is the name of the file. */
export async function serveImage(store: Pick<ImageStore, 'readStored'>, stream: PeerStream, header: Uint8Array): Promise<void> {
  const name = header.length > MAX_NAME_CHARS ? '' : Buffer.from(header).toString('latin1');
  const file = await store.readStored(name);
  if (file === null) stream.abort('not_found');
  else await sendBody(stream, file);
}
