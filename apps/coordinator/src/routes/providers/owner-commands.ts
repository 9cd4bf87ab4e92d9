/** `/console/v1/machines/{provider_id}/commands`: owners send commands, such as pause, to a connected machine, and list earlier ones. */
import {
  apiError,
  ConsoleCommandListSchema,
  type ConsoleCommandOutcome,
  type ConsoleCommandRefusal,
  ConsoleCommandResultSchema,
  type ConsoleMachineControl,
  ConsoleMachineControlSchema,
  type ConsoleStoredCommand,
  MachineCommandSchema,
  RequestError,
} from '@inference/formats';
import { type ProviderId, ProviderIdSchema } from '@inference/protocol';
import type { NetworkViews } from '../../cluster/views.js';
import type { OwnedProviderRepository } from '../../database/providers/owned-provider-repository.js';
import type { OwnerCommandRepository, StoredCommand } from '../../database/providers/owner-command-repository.js';
import { type AttemptCounters, countInAll } from '../../limits/attempt-counters.js';
import type { ProviderRegistry } from '../../providers/provider-registry.js';
import type { OwnerCommandOutcome } from '../../providers/session/owner-commands.js';
import { readPageQuery, toPage } from '../parameters/pagination.js';
import { isoTime } from '../parameters/times.js';
import type { ConsoleApi } from '../plugins/console-api.js';
import { findOwned } from './owned-provider.js';

const WINDOW_MS = 60_000;
/** Maximum commands per window. */
const MAX_PER_ACCOUNT = 60;
const MAX_PER_MACHINE = 20;

interface OwnerCommandRoutes {
  readonly ownedProviders: OwnedProviderRepository;
  readonly commands: OwnerCommandRepository;
  readonly attempts: AttemptCounters;
  /** Sends a command to a provider at any coordinator. Resolves to null if disconnected, because commands are never queued. */
  readonly execute: ProviderRegistry['executeOwnerCommand'];
  /** Called if an outcome could not be stored. */
  readonly onLogError: (error: unknown) => void;
}

export function addOwnerCommands(api: ConsoleApi, routes: OwnerCommandRoutes): void {
  const { ownedProviders, commands, attempts, execute, onLogError } = routes;
  const perAccount = attempts.counter('owner_commands_account', { maxAttempts: MAX_PER_ACCOUNT, windowMs: WINDOW_MS });
  const perMachine = attempts.counter('owner_commands_machine', { maxAttempts: MAX_PER_MACHINE, windowMs: WINDOW_MS });
  api.add(
    { method: 'POST', path: '/machines/:provider_id/commands', body: MachineCommandSchema, response: ConsoleCommandResultSchema },
    async ({ caller, userId, params, body: { command_id: commandId, action } }) => {
      const accountId = caller.account.id;
      const { providerId } = await findOwned(ownedProviders, accountId, params.provider_id);
      const counted = await countInAll([
        [perAccount, accountId],
        [perMachine, providerId],
      ]);
      if (!counted.isAdmitted) {
        throw new RequestError('rate_limit_exceeded', null, `Too many commands. Try again in ${counted.retryAfter} seconds.`);
      }
      const id = await commands.add({ accountId, providerId, actorId: userId, action });
      const outcome = await execute(providerId as ProviderId, { accountId, commandId, action });
      await commands.setOutcome(id, ...storedOutcome(outcome)).catch(onLogError);
      return resultOf(commandId, outcome);
    },
  );

  api.add({ method: 'GET', path: '/machines/:provider_id/commands', response: ConsoleCommandListSchema }, async (call) => {
    const { account } = call.caller;
    const { providerId } = await findOwned(ownedProviders, account.id, call.params.provider_id);
    const { limit, after } = readPageQuery(call.query);
    const rows = await commands.list(account.id, providerId, limit + 1, after);
    return toPage(rows, limit, ({ at, id }) => ({ at, id }), commandBody);
  });
}

function storedOutcome(outcome: OwnerCommandOutcome | null): [ConsoleCommandOutcome, ConsoleCommandRefusal | null] {
  const code = outcome === null ? 'disconnected' : outcome.outcome;
  return [code, outcome?.outcome === 'refused' ? outcome.refusal : null];
}

function commandBody({ id, at, actor, action, outcome, refusal }: StoredCommand): ConsoleStoredCommand {
  return {
    id,
    at: isoTime(at),
    actor: actor === null ? null : { user_id: actor.id, name: actor.name, email: actor.email },
    action,
    outcome,
    refusal,
  };
}

/** Response body. Throws RequestError if the command did not reach the machine or was not answered. */
function resultOf(commandId: string, outcome: OwnerCommandOutcome | null) {
  switch (outcome?.outcome) {
    case 'done':
      return { command_id: commandId, outcome: 'done' as const, refusal: null, settings: outcome.settings };
    case 'refused':
      return { command_id: commandId, outcome: 'refused' as const, refusal: outcome.refusal, settings: outcome.settings };
    case 'unsupported':
      throw failure('machine_unsupported');
    case 'not_linked':
      throw failure('machine_not_linked');
    case 'timeout':
      throw failure('machine_timeout');
    case 'busy':
      throw new RequestError('rate_limit_exceeded', null, 'Other commands still await an answer of this machine.');
    case 'disconnected':
    case undefined:
      throw failure('machine_offline');
    default:
      return outcome satisfies never;
  }
}

function failure(code: 'machine_offline' | 'machine_unsupported' | 'machine_not_linked' | 'machine_timeout'): RequestError {
  return new RequestError(code, null, apiError(code).message);
}

/** Returns a function that reads the remote control state of a provider, if connected, at any coordinator. */
export function machineControls(
  registry: ProviderRegistry,
  views: NetworkViews,
): (providerId: ProviderId) => Promise<ConsoleMachineControl | null> {
  return views.defineLookup('machine-control', { query: ProviderIdSchema, part: ConsoleMachineControlSchema }, (providerId) => {
    const provider = registry.snapshot(providerId);
    if (provider === null) return null;
    const { isSupported, isAllowed, settings } = provider.remoteControl;
    return { supported: isSupported, allowed: isAllowed, settings };
  });
}
