/** `ConnectedMachine`: the facts about a connected provider that rollouts need. `FleetSums`: the capacity at one coordinator. */
import { createHash } from 'node:crypto';
import { ProviderIdSchema, ReleaseVersionSchema } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import type { ProviderSnapshot } from '../providers/provider-snapshot.js';
import type { Fleet } from './rollout.js';

/** One coordinator reports only the owners with the most machines, up to this number. */
const MAX_OWNERS = 8;

export const ConnectedMachineSchema = Type.Object({
  provider_id: ProviderIdSchema,
  /** Null if the agent runs no released version. */
  version: Type.Union([ReleaseVersionSchema, Type.Null()]),
  chip_family: Type.String({ maxLength: 64 }),
  models: Type.Array(Type.String({ maxLength: 256 }), { maxItems: 64 }),
  slots: Type.Integer({ minimum: 1 }),
  account_id: Type.Union([Type.String(), Type.Null()]),
  /** 0 none, 1 self_signed, 2 hardware. */
  trust: Type.Integer({ minimum: 0, maximum: 2 }),
  /** Whether the network gives the machine no jobs. Pauses by the owner do not count. */
  is_blocked: Type.Boolean(),
  is_away: Type.Boolean(),
  is_restricted: Type.Boolean(),
  /** Model of the decode rate in `speed`. */
  speed_model: Type.Union([Type.String({ maxLength: 256 }), Type.Null()]),
  /** Tokens per second. */
  speed: Type.Union([Type.Number(), Type.Null()]),
});
export type ConnectedMachine = Static<typeof ConnectedMachineSchema>;

const BLOCKED_STATUSES: ReadonlySet<string> = new Set(['quarantined', 'key_expired', 'untrusted', 'below_min_trust_level', 'cooling_down']);
const RESTRICTED_STATUSES: ReadonlySet<string> = new Set(['quarantined', 'cooling_down']);
const PAUSED_BY_OWNER: ReadonlySet<string> = new Set(['away', 'draining', 'low_battery']);
const RELEASE_VERSION = /^\d{1,9}\.\d{1,9}\.\d{1,9}$/;

export function connectedMachine({
  registration,
  models,
  status,
  trust,
  statistics,
  currentModel,
  ownerAccountId,
}: ProviderSnapshot): ConnectedMachine {
  const { identity, hardware, slots, agentVersion } = registration;
  return {
    provider_id: identity.providerId,
    version: RELEASE_VERSION.test(agentVersion) ? agentVersion : null,
    chip_family: hardware.chip_family,
    models: models.map(({ id }) => id),
    slots,
    account_id: ownerAccountId,
    trust: trust.level === 'hardware' ? 2 : trust.level === 'self_signed' ? 1 : 0,
    is_blocked: BLOCKED_STATUSES.has(status),
    is_away: PAUSED_BY_OWNER.has(status),
    is_restricted: RESTRICTED_STATUSES.has(status),
    speed_model: statistics.decodeTps === null ? null : currentModel,
    speed: statistics.decodeTps,
  };
}

/** Sums of a coordinator's machines. Stored as JSON for the other coordinators. */
export const FleetSumsSchema = Type.Object({
  machines: Type.Integer({ minimum: 0 }),
  /** Machines that can get jobs. Absent from earlier versions. */
  available_machines: Type.Optional(Type.Integer({ minimum: 0 })),
  /** Machines that can get jobs, by owner, for the largest owners. Absent from earlier versions. Keys: `ownerHash`. */
  machines_by_owner: Type.Optional(Type.Record(Type.String(), Type.Integer({ minimum: 0 }))),
  slots: Type.Integer({ minimum: 0 }),
  machines_by_chip: Type.Record(Type.String(), Type.Integer()),
  machines_by_version: Type.Record(Type.String(), Type.Integer()),
  slots_by_model: Type.Record(Type.String(), Type.Integer()),
  slots_by_chip: Type.Record(Type.String(), Type.Integer()),
});
export type FleetSums = Static<typeof FleetSumsSchema>;

/** Sums over machines. Slots and owners are counted only of machines that can get jobs now. */
export function fleetSums(machines: Iterable<ConnectedMachine>): FleetSums {
  const sums = { machines: 0, available_machines: 0, slots: 0 };
  const maps = {
    byOwner: new Map<string, number>(),
    byChip: new Map(),
    byVersion: new Map(),
    slotsByModel: new Map(),
    slotsByChip: new Map(),
  };
  for (const { version, chip_family, models, slots, account_id, is_blocked, is_away } of machines) {
    sums.machines++;
    add(maps.byChip, chip_family, 1);
    add(maps.byVersion, version ?? 'other', 1);
    if (is_blocked || is_away) continue;
    sums.available_machines++;
    add(maps.byOwner, ownerHash(account_id), 1);
    sums.slots += slots;
    add(maps.slotsByChip, chip_family, slots);
    for (const model of models) add(maps.slotsByModel, model, slots);
  }
  return {
    ...sums,
    machines_by_owner: Object.fromEntries([...maps.byOwner].sort(([, a], [, b]) => b - a).slice(0, MAX_OWNERS)),
    machines_by_chip: Object.fromEntries(maps.byChip),
    machines_by_version: Object.fromEntries(maps.byVersion),
    slots_by_model: Object.fromEntries(maps.slotsByModel),
    slots_by_chip: Object.fromEntries(maps.slotsByChip),
  };
}

/** Sums over all coordinators. */
export function totalFleet(parts: readonly FleetSums[]): Fleet {
  const total = (read: (part: FleetSums) => Readonly<Record<string, number>>): Map<string, number> => {
    const map = new Map<string, number>();
    for (const part of parts) for (const [key, value] of Object.entries(read(part))) add(map, key, value);
    return map;
  };
  return {
    machines: parts.reduce((sum, { machines }) => sum + machines, 0),
    availableMachines: parts.reduce((sum, { machines, available_machines = machines }) => sum + available_machines, 0),
    machinesByOwner: total((part) => part.machines_by_owner ?? {}),
    slots: parts.reduce((sum, { slots }) => sum + slots, 0),
    machinesByChip: total((part) => part.machines_by_chip),
    machinesByVersion: total((part) => part.machines_by_version),
    slotsByModel: total((part) => part.slots_by_model),
    slotsByChip: total((part) => part.slots_by_chip),
  };
}

/** Key of an owner. All machines without an account share one key, because anybody can connect many of them. */
export function ownerHash(accountId: string | null): string {
  return createHash('sha256')
    .update(`inference/fleet-owner/v1\0${accountId ?? ''}`)
    .digest('hex')
    .slice(0, 32);
}

function add(map: Map<string, number>, key: string, value: number): void {
  map.set(key, (map.get(key) ?? 0) + value);
}
