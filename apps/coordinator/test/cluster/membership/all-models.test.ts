import { EMPTY_DIGEST } from '@inference/scheduler';
import { afterEach, describe, expect, it } from 'vitest';
import type { LinkError } from '../../../src/cluster/link/link-error.js';
import { fetchModels, MODELS, serveModels } from '../../../src/cluster/membership/all-models.js';
import { decodeHeartbeat, type PublishedModel } from '../../../src/cluster/membership/heartbeat.js';
import { Membership } from '../../../src/cluster/membership/membership.js';
import { type Peer, PeerStream } from '../../../src/cluster/peer.js';
import { LinkNetwork } from '../link-fixture.js';

let membership: Membership;
afterEach(() => membership.close());

/** Outcome of fetching the models of a peer with `count` models: their ids, or the error's code. */
async function fetched(count: number, { servesStreams = true } = {}): Promise<readonly string[] | string> {
  const network = new LinkNetwork(1);
  const [near, far] = [network.start('near'), network.start('far')];
  const models = Array.from({ length: count }, (_, index): PublishedModel => {
    return { id: `vendor/model-${index}`, type: 'text', images: [], vision: null, digest: { ...EMPTY_DIGEST, serving: 1 } };
  });
  membership = new Membership({
    self: 'far',
    broadcast: { publish: () => {}, subscribe: () => () => {} },
    models: () => models,
    providers: () => 0,
    isDraining: () => false,
    requestModels: async () => new Uint8Array(),
    events: { joined: () => {}, left: () => {}, changed: () => {}, clockDiffers: () => {}, refused: () => {} },
    now: Date.now,
  });
  far.links.onRequest(MODELS, () => membership.allModels());
  if (servesStreams) {
    far.links.onStream(MODELS, (stream) => {
      const incoming = PeerStream.incoming(stream);
      void serveModels(membership, incoming);
      return incoming;
    });
  }
  const link = near.to('far');
  const peer: Peer = {
    id: 'far',
    request: (kind, payload, timeoutMs) => link.request(kind, payload, { timeoutMs }),
    openStream: (kind, header) => PeerStream.open((handlers) => link.openStream(kind, header, handlers)),
  };
  let isDone = false;
  const outcome = fetchModels(peer)
    .then(
      (bytes) => {
        const decoded = decodeHeartbeat(bytes);
        return decoded.kind === 'heartbeat' ? decoded.heartbeat.models.map(({ id }) => id) : decoded.kind;
      },
      (error: LinkError) => error.code,
    )
    .finally(() => {
      isDone = true;
    });
  await network.clock.runAsync(60_000, () => isDone);
  for (const { links } of [near, far]) links.close();
  return outcome;
}

describe('a coordinator', () => {
  it.each([0, 100, 5000])('sends a peer all of its %i models', async (count) => {
    const ids = await fetched(count);
    expect(ids).toHaveLength(count);
    expect(new Set(ids).size).toBe(count);
  });

  it('sends at most as many models as a peer accepts', async () => {
    expect(await fetched(20_001)).toHaveLength(20_000);
  });

  it('does not get more models than fit into a reply from an earlier version', async () => {
    expect(await fetched(100, { servesStreams: false })).toHaveLength(100);
    expect(await fetched(5000, { servesStreams: false })).toBe('failed');
  });
});
