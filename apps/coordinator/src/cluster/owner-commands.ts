/**
 * `executeInCluster`: executes a command of a provider's owner, such as "pause", at whichever coordinator the provider is connected to.
 *
 * The console's routes call `executeInCluster`. The coordinator that holds the provider's connection answers with `serveOwnerCommand`.
 */
import { MachineSettingsSchema, OWNER_COMMAND_REFUSALS, OwnerActionSchema, type ProviderId, ProviderIdSchema } from '@inference/protocol';
import Type from 'typebox';
import { Compile } from 'typebox/compile';
import type { ProviderRegistry } from '../providers/provider-registry.js';
import { OWNER_COMMAND_TIMEOUT_MS, type OwnerCommandOutcome, type OwnerCommandRequest } from '../providers/session/owner-commands.js';
import { firstFound } from './cluster-views.js';
import { encodeMessage, parseMessage } from './json-message.js';
import type { Peer } from './peer.js';

/** Longer than the peer's own wait for the provider, so that the peer can answer `timeout`. */
const PEER_TIMEOUT_MS = OWNER_COMMAND_TIMEOUT_MS + 2000;
const MAX_REQUEST_BYTES = 8 * 1024;

const requestValidator = Compile(
  Type.Object({
    provider_id: ProviderIdSchema,
    account_id: Type.String({ minLength: 1, maxLength: 256 }),
    command_id: Type.String({ minLength: 36, maxLength: 36 }),
    action: OwnerActionSchema,
  }),
);
const settings = MachineSettingsSchema;
const outcomeValidator = Compile(
  Type.Union([
    Type.Object({ outcome: Type.Literal('done'), settings }),
    Type.Object({ outcome: Type.Literal('refused'), refusal: Type.Enum([...OWNER_COMMAND_REFUSALS, 'other']), settings }),
    Type.Object({ outcome: Type.Enum(['unsupported', 'not_linked', 'timeout', 'disconnected', 'busy']) }),
  ]),
);
type Registry = Pick<ProviderRegistry, 'executeOwnerCommand'>;

/** Executes a command here or at a peer. Null: the provider is not connected to any coordinator that answers. */
export async function executeInCluster(
  registry: Registry,
  peers: readonly Peer[],
  providerId: ProviderId,
  request: OwnerCommandRequest,
): Promise<OwnerCommandOutcome | null> {
  const own = await registry.executeOwnerCommand(providerId, request);
  if (own !== null) return own;
  const { accountId, commandId, action } = request;
  const payload = encodeMessage({ provider_id: providerId, account_id: accountId, command_id: commandId, action });
  return firstFound(peers, async (peer) => parseMessage(await peer.request('owner_command', payload, PEER_TIMEOUT_MS), outcomeValidator));
}

/** Answers a peer's request. The answer is JSON null if the request is invalid or the provider is not connected here. */
export async function serveOwnerCommand(registry: Registry, payload: Uint8Array): Promise<Uint8Array> {
  const request = payload.length > MAX_REQUEST_BYTES ? null : parseMessage(payload, requestValidator);
  if (request === null) return encodeMessage(null);
  const { provider_id, account_id: accountId, command_id: commandId, action } = request;
  return encodeMessage(await registry.executeOwnerCommand(provider_id, { accountId, commandId, action }));
}
