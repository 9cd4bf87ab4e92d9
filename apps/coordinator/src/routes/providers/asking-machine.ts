/**
 * `askingMachines` identifies the machine that requests agent releases, so that a rollout can decide per machine.
 *
 * A session token of the provider identifies the machine. Without a token, the network address does, if exactly one machine is connected
 * from there.
 */
import { fromHex, ProviderIdSchema, Sha256HexSchema, toHex } from '@inference/protocol';
import type { FastifyRequest } from 'fastify';
import Type from 'typebox';
import type { NetworkViews } from '../../cluster/views.js';
import { networkOf } from '../../limits/network-address.js';
import type { ProviderRegistry } from '../../providers/provider-registry.js';
import { hashOfToken, providerOfToken } from '../../providers/session/registration/session-token.js';
import { type ConnectedMachine, ConnectedMachineSchema, connectedMachine } from '../../releases/connected-machine.js';
import { presentedKey } from '../plugins/api-key-auth.js';

/** Query to other coordinators, which get only the hash of the session token. */
const TokenQuerySchema = Type.Object({ provider_id: ProviderIdSchema, token_sha256: Sha256HexSchema });
const NetworkQuerySchema = Type.String({ minLength: 1, maxLength: 64 });
/** Maximum machines per coordinator. Two suffice to show that the address is ambiguous. */
const MAX_FOUND = 2;

export interface AskingMachine {
  readonly machine: ConnectedMachine | null;
  /** Whether a session token identified the machine. False for a machine that was inferred from the address. */
  readonly isProven: boolean;
  /** Network of the request, for decisions about unknown machines. Null if the request has a session token of no connected machine. */
  readonly network: string | null;
}

/** Searches the machines of all coordinators. */
export function askingMachines(registry: ProviderRegistry, views: NetworkViews): (request: FastifyRequest) => Promise<AskingMachine> {
  const findByToken = views.defineLookup('release-machine', { query: TokenQuerySchema, part: ConnectedMachineSchema }, (query) => {
    const provider = registry.snapshotByToken(query.provider_id, fromHex(query.token_sha256));
    return provider === null ? null : connectedMachine(provider);
  });
  const readAtNetwork = views.define(
    'release-machines-at',
    { query: NetworkQuerySchema, part: Type.Array(ConnectedMachineSchema, { maxItems: MAX_FOUND }) },
    (network) => {
      const found: ConnectedMachine[] = [];
      for (const provider of registry.snapshots()) {
        if (provider.network === network && found.length < MAX_FOUND) found.push(connectedMachine(provider));
      }
      return found;
    },
  );
  return async (request) => {
    const network = networkOf(request.ip);
    const token = presentedKey(request);
    const providerId = token === null ? null : providerOfToken(token);
    if (token !== null && providerId !== null) {
      const machine = await findByToken({ provider_id: providerId, token_sha256: toHex(hashOfToken(token)) });
      return { machine, isProven: machine !== null, network: machine === null ? null : network };
    }
    const [found, another] = (await readAtNetwork(network)).flat();
    return { machine: another === undefined ? (found ?? null) : null, isProven: false, network };
  };
}
