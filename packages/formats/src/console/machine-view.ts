/** Console API: one machine of an account, as its owner sees it, connected or not. */
import { NAME_PATTERN, ProviderStatusSchema } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { body, count, time, timeOrNull } from './schema-parts.js';

const nullable = <Schema extends Parameters<typeof Type.Union>[0][number]>(schema: Schema) => Type.Union([schema, Type.Null()]);

/** What was known of a machine when its connection began or ended. */
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
  /** Why the connection ended: a code; null when that is not known. */
  left: nullable(Type.String()),
});
export type ConsoleLastSeen = Static<typeof ConsoleLastSeenSchema>;

/** An operator took the machine out of routing. */
export const MachineHoldSchema = Type.Object({ reason: Type.String(), since: time });
export type MachineHold = Static<typeof MachineHoldSchema>;

/** `GET /console/v1/machines/{provider_id}`. */
export const ConsoleMachineViewSchema = Type.Object({
  provider_id: Type.String(),
  name: nullable(Type.String()),
  linked_at: timeOrNull,
  /** What `GET /v1/providers/me` answers the machine itself; null while it is not connected. */
  status: nullable(ProviderStatusSchema),
  last_seen: nullable(ConsoleLastSeenSchema),
  hold: nullable(MachineHoldSchema),
});
export type ConsoleMachineView = Static<typeof ConsoleMachineViewSchema>;

const MACHINE_NAME = `^(?=\\S(?:.{0,62}\\S)?$)${NAME_PATTERN.slice(1)}`;

/** `PATCH /console/v1/machines/{provider_id}`. */
export const RenameMachineSchema = body({
  name: Type.Union([Type.String({ pattern: MACHINE_NAME, description: 'a name of 1 to 64 characters' }), Type.Null()], {
    description: 'a name of 1 to 64 characters, without space around it or control characters, or null for none',
  }),
});
export type RenameMachine = Static<typeof RenameMachineSchema>;
