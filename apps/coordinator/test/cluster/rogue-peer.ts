/** Fake coordinator without providers. A test decides how it answers requests for views and images. */
import { PeerLinks } from '../../src/cluster/link/peer-links.js';
import { Membership } from '../../src/cluster/membership/membership.js';
import { PeerStream } from '../../src/cluster/peer.js';
import { NatsTransport } from '../../src/cluster/transport/nats-transport.js';

export interface RoguePeer {
  /** Answers a stream of kind `view` or `image`. By default, no answer is sent. */
  answer: (stream: PeerStream) => void;
  /** Publishes to all coordinators. */
  publish(subject: string, bytes: Uint8Array): void;
  /** Calls back with messages that others publish. Returns a cancel function. */
  subscribe(pattern: string, handler: (subject: string, bytes: Uint8Array) => void): () => void;
  close(): Promise<void>;
}

export function joinRoguePeer(natsUrl: string): RoguePeer {
  const self = 'rogue';
  const transport = new NatsTransport({ servers: [natsUrl], name: self, log: () => {} });
  const links = new PeerLinks({ self, transport, log: () => {} });
  const publish = (subject: string, bytes: Uint8Array): void => void transport.publish(subject, bytes);
  const membership = new Membership({
    self,
    broadcast: { publish, subscribe: (pattern, handler) => transport.subscribe(pattern, handler) },
    models: () => [],
    providers: () => 0,
    isDraining: () => false,
    requestModels: async () => new Uint8Array(),
    events: { joined: (id) => void links.link(id), left: () => {}, changed: () => {}, clockDiffers: () => {}, refused: () => {} },
    now: Date.now,
  });
  links.onRequest('models', () => membership.allModels());
  const peer: RoguePeer = {
    answer: () => {},
    publish,
    subscribe: (pattern, handler) => transport.subscribe(pattern, handler),
    async close() {
      membership.close();
      links.close();
      await transport.close();
    },
  };
  for (const kind of ['view', 'image']) {
    links.onStream(kind, (stream) => {
      const incoming = PeerStream.incoming(stream);
      setImmediate(() => peer.answer(incoming));
      return incoming;
    });
  }
  return peer;
}
