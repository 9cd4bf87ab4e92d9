/** Console API schemas: one machine of the account, connected or not, and remote control of the machine. */
import { MachineSettingsSchema, NAME_PATTERN, OWNER_COMMAND_REFUSALS, OwnerActionSchema, ProviderStatusSchema } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { count, nullable, page, requestBody, time, timeOrNull } from './schema-parts.js';

/** What the coordinator last knew about a machine, from its last connection. */
export const ConsoleLastSeenSchema = Type.Object({
  at: time,
  serial_number: Type.String(),
  chip_name: Type.String(),
  agent: Type.Object({ name: Type.String(), version: Type.String() }),
  trust_level: Type.Enum(['none', 'self_signed', 'hardware']),
  models: Type.Array(Type.String()),
  requests_served: count,
  tokens_generated: count,
  decode_tps: nullable(Type.Number()),
  /** Code of the reason for the disconnect; null: unknown. */
  left: nullable(Type.String()),
});
export type ConsoleLastSeen = Static<typeof ConsoleLastSeenSchema>;

/** An operator's quarantine of the machine. */
const MachineHoldSchema = Type.Object({ reason: Type.String(), since: time });

/** Remote control of the machine from the console. */
export const ConsoleMachineControlSchema = Type.Object({
  /** False for agents of earlier versions. */
  supported: Type.Boolean(),
  /** Whether the owner permits commands from the console, by a setting on the machine. */
  allowed: Type.Boolean(),
  /** Null until the machine has reported its settings. */
  settings: nullable(MachineSettingsSchema),
});
export type ConsoleMachineControl = Static<typeof ConsoleMachineControlSchema>;

const refusal = Type.Enum([...OWNER_COMMAND_REFUSALS, 'other']);

/** `POST /console/v1/machines/{provider_id}/commands`. */
export const MachineCommandSchema = requestBody({
  command_id: Type.String({
    pattern: '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$',
    description: 'a UUID in lower case; the machine executes each id once',
  }),
  action: OwnerActionSchema,
});
export const ConsoleCommandResultSchema = Type.Object({
  command_id: Type.String(),
  outcome: Type.Enum(['done', 'refused']),
  /** Reason of the refusal; null unless `refused`. */
  refusal: nullable(refusal),
  /** Settings after the command. */
  settings: MachineSettingsSchema,
});
export type ConsoleCommandResult = Static<typeof ConsoleCommandResultSchema>;

export type ConsoleCommandRefusal = Static<typeof refusal>;

const outcome = Type.Enum(['done', 'refused', 'unsupported', 'not_linked', 'timeout', 'disconnected', 'busy']);
export type ConsoleCommandOutcome = Static<typeof outcome>;

export const ConsoleStoredCommandSchema = Type.Object({
  id: Type.String(),
  at: time,
  /** Who sent the command. Null for a deleted account. */
  actor: nullable(Type.Object({ user_id: Type.String(), name: Type.String(), email: Type.String() })),
  /** Null if this version of the coordinator does not know the action. */
  action: nullable(OwnerActionSchema),
  /**
   * `timeout`: the machine did not answer in time. A command that arrives later is refused as expired.
   *
   * Null: no answer yet, or unknown because the coordinator stopped meanwhile.
   */
  outcome: nullable(outcome),
  refusal: nullable(refusal),
});
export type ConsoleStoredCommand = Static<typeof ConsoleStoredCommandSchema>;
/** `GET /console/v1/machines/{provider_id}/commands`. */
export const ConsoleCommandListSchema = page(ConsoleStoredCommandSchema);

/** `GET /console/v1/machines/{provider_id}`. */
export const ConsoleMachineViewSchema = Type.Object({
  provider_id: Type.String(),
  name: nullable(Type.String()),
  linked_at: timeOrNull,
  /** The machine's own status (`GET /v1/providers/me`); null while disconnected. */
  status: nullable(ProviderStatusSchema),
  /** Null while disconnected. */
  control: nullable(ConsoleMachineControlSchema),
  last_seen: nullable(ConsoleLastSeenSchema),
  hold: nullable(MachineHoldSchema),
});
export type ConsoleMachineView = Static<typeof ConsoleMachineViewSchema>;

const MACHINE_NAME = `^(?=\\S(?:.{0,62}\\S)?$)${NAME_PATTERN.slice(1)}`;

/** `PATCH /console/v1/machines/{provider_id}`. */
export const RenameMachineSchema = requestBody({
  name: Type.Union([Type.String({ pattern: MACHINE_NAME, description: 'a name of 1 to 64 characters' }), Type.Null()], {
    description: 'a name of 1 to 64 characters, without space around it or control characters, or null for none',
  }),
});
