/**
 * `fetchModels` requests all models of a peer. `serveModels` sends this coordinator's models to a peer.
 *
 * The models of most coordinators fit into the reply to a request. The peer rejects the request for a longer list, and `fetchModels`
 * opens a stream.
 */
import { LinkError } from '../link/link-error.js';
import type { Peer, PeerStream } from '../peer.js';
import { readBody, sendBody } from '../stream-body.js';
import type { Membership } from './membership.js';

/** Kind of the request and of the stream. Coordinators of earlier versions do not serve the stream. */
export const MODELS = 'models';
/** Maximum time for the reply, in milliseconds. */
const REPLY_TIMEOUT_MS = 3000;
/** Room for 20,000 models with digests of usual length. */
const MAX_MODELS_BYTES = 32 * 1024 * 1024;
const NOTHING = new Uint8Array(0);

/** Resolves to an encoded heartbeat with all models of a peer. Rejects if the request or the stream fails. */
export async function fetchModels(peer: Peer): Promise<Uint8Array> {
  try {
    return await peer.request(MODELS, NOTHING, REPLY_TIMEOUT_MS);
  } catch (error) {
    if (!(error instanceof LinkError) || error.code !== 'too_large') throw error;
  }
  const models = await readBody(peer.openStream(MODELS, NOTHING), MAX_MODELS_BYTES);
  if (models === null) throw new LinkError('failed', `models of ${peer.id}`);
  return models;
}

/** Serves a stream of kind {@link MODELS}. */
export function serveModels(membership: Pick<Membership, 'allModels'>, stream: PeerStream): Promise<void> {
  return sendBody(stream, membership.allModels());
}
