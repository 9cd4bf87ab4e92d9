/** `/console/v1/machines`: the machines that earn for the account that is signed in, how one is taken out of it, and codes that link more. */
import {
  type ConsoleMachine,
  ConsoleMachineCodeSchema,
  ConsoleMachineListSchema,
  ConsoleUnlinkedMachineSchema,
  RequestError,
} from '@inference/formats';
import type { ProviderId } from '@inference/protocol';
import type { MachineLinks } from '../../accounts/machine-links.js';
import { firstGap } from '../../attestation/trust.js';
import type { Fleet } from '../../fleet/fleet.js';
import type { OnlineSession } from '../../fleet/provider-session.js';
import type { MachineCodes } from '../../store/machine-codes.js';
import type { Database } from '../../store/tables.js';
import type { ConsoleApi } from './console-api.js';
import { isoTime, isoTimeOrNull } from './page.js';

export interface MachineRoutes {
  readonly database: Database;
  readonly fleet: Fleet;
  readonly codes: MachineCodes;
  readonly links: MachineLinks;
}

export function addMachineRoutes(api: ConsoleApi, { database, fleet, codes, links }: MachineRoutes): void {
  api.add({ method: 'GET', path: '/machines', answer: ConsoleMachineListSchema }, async ({ who }) => {
    const owned = await database
      .selectFrom('provider_owners')
      .selectAll()
      .where('account_id', '=', who.account.id)
      .orderBy('linked_at')
      .orderBy('provider_id')
      .execute();
    const online = new Map([...fleet.sessions()].map((session) => [session.registration.identity.providerId as string, session]));
    return {
      data: owned.map((row): ConsoleMachine => {
        const session = online.get(row.provider_id);
        return {
          provider_id: row.provider_id,
          linked_at: isoTimeOrNull(row.linked_at),
          live: session === undefined ? null : liveState(fleet, session),
        };
      }),
    };
  });

  api.add({ method: 'DELETE', path: '/machines/:provider_id', answer: ConsoleUnlinkedMachineSchema }, async ({ who, params }) => {
    const providerId = (params.provider_id ?? '') as ProviderId;
    if (!(await links.unlink(who.account.id, providerId))) throw new RequestError('not_found', null, 'There is no such machine.');
    return { provider_id: providerId, unlinked: true as const };
  });

  api.add({ method: 'POST', path: '/machine-codes', answer: ConsoleMachineCodeSchema, status: 201 }, async ({ who }) => {
    const { code, expiresAt } = await codes.make(who.account.id);
    return { code, expires_at: isoTime(expiresAt) };
  });
}

function liveState(fleet: Fleet, session: OnlineSession): ConsoleMachine['live'] {
  const { identity, slots, registeredAt } = session.registration;
  const trust = session.trust();
  return {
    status: fleet.status(session),
    reason: fleet.standing(identity.providerId).detail ?? firstGap(trust),
    trust_level: trust.level,
    attested: session.attested,
    simulated: identity.simulated,
    serial_number: identity.attestation.serial_number,
    chip_name: identity.attestation.chip_name,
    models: session.models.map((model) => model.id),
    slots,
    running_jobs: session.jobs.used,
    decode_tps: session.record.decodeTps,
    requests_served: session.record.requestsServed,
    tokens_generated: session.record.tokensGenerated,
    connected_at: isoTime(registeredAt),
  };
}
