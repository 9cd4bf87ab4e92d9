/**
 * Messages of every supported version between coordinators are read, members of later versions are ignored, and peers of other versions
 * are refused. `messages/version-1.json` was recorded between two coordinators of version 1; a recording never changes.
 */
import { EventEmitter } from 'node:events';
import { readFileSync } from 'node:fs';
import { decodeDigest } from '@inference/scheduler';
import { describe, expect, it } from 'vitest';
import { encodeMessage } from '../../src/cluster/json-message.js';
import { MIN_VERSION, readHeader, VERSION } from '../../src/cluster/link/envelope.js';
import { hasWholeFrames } from '../../src/cluster/link/frame.js';
import { CLUSTER_VERSION, decodeHeartbeat, type Heartbeat } from '../../src/cluster/membership/heartbeat.js';
import { Membership, type RefusedHeartbeat } from '../../src/cluster/membership/membership.js';
import { parseNudge } from '../../src/cluster/nudges.js';
import { decodeGrant, decodePermitRequest } from '../../src/cluster/permits/permit-messages.js';
import {
  parseAskerMessage,
  parseClaimants,
  parseDescribeRequest,
  parseFinding,
  parseOwnerMessage,
  parsePlacementRequest,
} from '../../src/cluster/placement/placement-messages.js';
import { parsePrefixHashes } from '../../src/cluster/placement/prefix-hints.js';
import { parseProviderDescription } from '../../src/cluster/placement/provider-description.js';
import { LinkNetwork } from './link-fixture.js';

interface Recording {
  readonly messages: Readonly<Record<string, unknown>>;
  /** Hexadecimal. */
  readonly envelopes: Readonly<Record<string, string>>;
}

// Not validated: the file in this folder has the type `Recording`.
const recorded = JSON.parse(readFileSync(new URL('messages/version-1.json', import.meta.url), 'utf8')) as Recording;
const heartbeat = recorded.messages.heartbeat as Heartbeat;

/** Parsers by the name of the recorded message, up to its first `_`. */
const PARSERS: Readonly<Record<string, (bytes: Uint8Array) => unknown>> = {
  heartbeat: (bytes) => {
    const decoded = decodeHeartbeat(bytes);
    return decoded.kind === 'heartbeat' ? decoded.heartbeat : null;
  },
  describe_request: parseDescribeRequest,
  provider_description: parseProviderDescription,
  placement_request: parsePlacementRequest,
  permit_request: decodePermitRequest,
  grant: decodeGrant,
  owner: parseOwnerMessage,
  asker: parseAskerMessage,
  finding: parseFinding,
  claimants: parseClaimants,
  prefix_hashes: (bytes) => wrapped('hashes', parsePrefixHashes(bytes)),
  nudge: (bytes) => wrapped('hints', parseNudge(bytes)),
};

function wrapped(name: string, value: unknown): object | null {
  return value === null ? null : { [name]: value };
}

function parserOf(name: string): (bytes: Uint8Array) => unknown {
  const parser = PARSERS[name] ?? PARSERS[name.split('_')[0] ?? ''];
  if (parser === undefined) throw new Error(`no parser for ${name}`);
  return parser;
}

/** Copy of a value with an unknown member added to every object. */
function withFutureMembers(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withFutureMembers);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([name, member]) => [name, withFutureMembers(member)]);
  return { ...Object.fromEntries(members), member_of_a_later_version: { since: 2 } };
}

describe('a message of version 1', () => {
  it.each(Object.keys(recorded.messages))('%s is read, and members of later versions are ignored', (name) => {
    const parse = parserOf(name);
    const message = recorded.messages[name];
    expect(parse(encodeMessage(message))).toEqual(message);
    expect(parse(encodeMessage(withFutureMembers(message)))).toMatchObject(message as object);
    expect(parse(encodeMessage({ member_of_a_later_version: 1 }))).toBeNull();
  });

  it('has been recorded of every kind', () => {
    const used = new Set(Object.keys(recorded.messages).map(parserOf));
    expect(Object.entries(PARSERS).filter(([, parser]) => !used.has(parser))).toEqual([]);
  });

  it('carries a digest that is read', () => {
    expect(heartbeat.models.map(({ digest }) => decodeDigest(digest ?? ''))).toMatchObject([{ kind: 'digest', digest: { serving: 1 } }]);
  });
});

/** A coordinator's `Membership` that records published messages and refused heartbeats. */
function member() {
  const network = new EventEmitter();
  const published: Heartbeat[] = [];
  const refused: (readonly [string, RefusedHeartbeat])[] = [];
  const membership = new Membership({
    self: 'own',
    broadcast: {
      publish: (_subject, bytes) => void published.push(JSON.parse(Buffer.from(bytes).toString())),
      subscribe: (_pattern, handler) => {
        network.on('message', handler);
        return () => network.off('message', handler);
      },
    },
    models: () => [],
    providers: () => 0,
    isDraining: () => false,
    requestModels: async () => new Uint8Array(),
    events: {
      joined: () => {},
      left: () => {},
      changed: () => {},
      clockDiffers: () => {},
      refused: (id, refusal) => refused.push([id, refusal]),
    },
    now: () => heartbeat.at,
  });
  const receive = (id: string, message: unknown): void => void network.emit('message', `fleet.digest.${id}`, encodeMessage(message));
  return { membership, published, refused, receive };
}

describe('a coordinator', () => {
  it('publishes every member that version 1 reads', () => {
    const { membership, published } = member();
    membership.announce();
    membership.close();
    for (const message of published) expect(Object.keys(message)).toEqual(expect.arrayContaining(Object.keys(heartbeat)));
    expect(published.length).toBeGreaterThan(0);
  });

  it('works with the next version, and refuses the one after and malformed messages', () => {
    const { membership, refused, receive } = member();
    receive('next', withFutureMembers({ ...heartbeat, version: CLUSTER_VERSION + 1 }));
    receive('after-next', { ...heartbeat, version: CLUSTER_VERSION + 2 });
    // Of a version without any of today's members.
    receive('distant', { version: 1000 });
    receive('malformed', { ...heartbeat, epoch: 7 });
    expect(membership.peers.map(({ id }) => id)).toEqual(['next']);
    expect(refused).toEqual([
      ['after-next', { kind: 'unsupported_version', version: CLUSTER_VERSION + 2 }],
      ['distant', { kind: 'unsupported_version', version: 1000 }],
      ['malformed', { kind: 'malformed' }],
    ]);
    membership.close();
  });
});

describe('an envelope of version 1', () => {
  it.each(Object.keys(recorded.envelopes))('%s is read', (name) => {
    const envelope = Buffer.from(recorded.envelopes[name] ?? '', 'hex');
    expect(readHeader(envelope)).toMatchObject({ version: 1, maxVersion: 1 });
    expect(hasWholeFrames(envelope)).toBe(true);
  });

  it('of an unknown peer is answered in the oldest version that both may read', () => {
    const net = new LinkNetwork(1);
    const a = net.start('a');
    const answers: Buffer[] = [];
    net.network.onMessage = (subject, payload) => {
      if (subject === 'coordinator.old.in.a') answers.push(Buffer.from(payload));
    };
    net.network.inject('coordinator.a.in.old', Buffer.from(recorded.envelopes.probe ?? '', 'hex'));
    net.until(() => answers.length > 1);
    expect(answers.map((answer) => [answer[0], answer[2]])).toEqual(answers.map(() => [MIN_VERSION, VERSION]));
    expect(a.to('old').counts.unsupported).toBe(0);
  });
});

it('an envelope of an unknown version is counted and reported', () => {
  const net = new LinkNetwork(1);
  const a = net.start('a');
  const envelope = Buffer.from(recorded.envelopes.probe ?? '', 'hex');
  envelope[0] = VERSION + 6;
  for (let count = 0; count < 10; count++) net.network.inject('coordinator.a.in.later', envelope);
  expect(a.to('later').counts).toMatchObject({ unsupported: 10, malformed: 0 });
  expect(a.events).toEqual(
    [1, 10].map((count) => ({ event: 'unsupported_version', peer: 'later', reason: `version ${VERSION + 6}`, count })),
  );
  expect(a.to('later').state).toBe('connecting');
});
