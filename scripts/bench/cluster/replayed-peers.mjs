/**
 * Program that simulates many coordinators of a cluster, to load one real coordinator like a large cluster.
 *
 * Each simulated peer broadcasts digests (free capacity per model) and keeps a link (a connection over NATS) to the real coordinator.
 *
 * Arguments: NATS URL, id of the real coordinator, number of peers, models per peer, a model that all peers serve without a free slot.
 * IPC: sends `{ready}`. Answers `{isOn: true}` with `{done}` when all links are up, `{isOn: false}` when the peers have left.
 *
 * JavaScript, because the NATS client does not load under tsx.
 */
import { PeerLinks } from '../../../apps/coordinator/dist/cluster/link/peer-links.js';
import { Membership } from '../../../apps/coordinator/dist/cluster/membership/membership.js';
import { NatsTransport } from '../../../apps/coordinator/dist/cluster/transport/nats-transport.js';

const [url = '', coordinator = '', peerCount, modelCount, fullModel = ''] = process.argv.slice(2);
/** Throughput classes in the digest of a model. */
const CLASSES = 16;
const POLL_MS = 50;
/** Time over which the peers start: one heartbeat interval, so that their heartbeats are spread evenly. */
const START_MS = 1000;

class ReplayedPeer {
  #links;
  #membership;
  #changes = 0;

  constructor(transport, number) {
    const self = `replayed-${number}`;
    this.#links = new PeerLinks({ self, transport, log: () => {} });
    const membership = new Membership({
      self,
      broadcast: {
        publish: (subject, bytes) => void transport.publish(subject, bytes),
        // Without digests of other simulated peers, each peer links to the measured coordinator only.
        subscribe: (_, handler) => transport.subscribe(`fleet.digest.${coordinator}`, handler),
      },
      models: () => this.#models(),
      providers: () => 100,
      isDraining: () => false,
      requestModels: async () => new Uint8Array(),
      events: {
        joined: (id) => void this.#links.link(id),
        left: (id) => this.#links.remove(id),
        changed: () => {},
        clockDiffers: () => {},
      },
      now: Date.now,
    });
    this.#membership = membership;
    this.#links.onRequest('models', () => membership.allModels());
  }

  get isUp() {
    return this.#links.links.get(coordinator)?.state === 'up';
  }

  close() {
    this.#membership.close();
    this.#links.close();
  }

  /** Each call returns changed digests. */
  *#models() {
    this.#changes++;
    for (let number = 0; number < Number(modelCount); number++) {
      const id = number === 0 ? fullModel : `replayed/model-${number}`;
      yield { id, type: 'text', images: [], digest: digest(this.#changes, number === 0 ? 0 : CLASSES) };
    }
  }
}

function digest(changes, classCount) {
  const classes = Array.from({ length: classCount }, (_, index) => ({
    isCold: false,
    freeSlots: 3 + ((changes + index) % 7),
    totalSlots: 40,
    trustedFreeSlots: 1,
    prefillTps: 1234.5 + index,
    decodeTps: 45.25 + index,
    waitMs: 120.5 + index,
    penaltyMs: 0,
  }));
  const freeSlots = classes.reduce((sum, one) => sum + one.freeSlots, 0);
  return {
    serving: 100,
    totalSlots: 40 * CLASSES,
    freeSlots,
    trustedSlots: 200,
    trustedFreeSlots: classCount,
    cold: 0,
    loading: 0,
    queueLength: changes % 50,
    meanServiceMs: 4200,
    maxContextTokens: 131_072,
    imageSizes: [],
    classes,
  };
}

const transport = new NatsTransport({ servers: [url], name: 'replayed peers', log: () => {} });
let peers = [];

async function join() {
  const count = Number(peerCount);
  for (let number = 0; number < count; number++) {
    peers.push(new ReplayedPeer(transport, number));
    await pause(START_MS / count);
  }
  while (!peers.every(({ isUp }) => isUp)) await pause(POLL_MS);
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

process.on('message', ({ isOn }) => {
  if (!isOn) {
    for (const peer of peers) peer.close();
    peers = [];
  }
  void (isOn ? join() : Promise.resolve()).then(() => process.send?.({ done: true }));
});
process.on('disconnect', () => process.exit());
const isReady = setInterval(() => {
  if (!transport.isConnected) return;
  clearInterval(isReady);
  process.send?.({ ready: true });
}, POLL_MS);
