/** Console API schemas: machines that earn for the account, and device codes that link new machines. */
import Type, { type Static } from 'typebox';
import { ConsoleLastSeenSchema } from './machine-view.js';
import { count, time, timeOrNull } from './schema-parts.js';

/** `live` is null while the machine is disconnected. */
const ConsoleMachineSchema = Type.Object({
  provider_id: Type.String(),
  /** Name that the owner chose, or that the machine reported when it was linked. */
  name: Type.Union([Type.String(), Type.Null()]),
  linked_at: timeOrNull,
  /** Null if the machine has never connected since it was linked. */
  last_seen: Type.Union([ConsoleLastSeenSchema, Type.Null()]),
  live: Type.Union([
    Type.Object({
      status: Type.String(),
      reason: Type.Union([Type.String(), Type.Null()]),
      trust_level: Type.Union([Type.String(), Type.Null()]),
      attested: Type.Boolean(),
      simulated: Type.Boolean(),
      serial_number: Type.String(),
      chip_name: Type.String(),
      models: Type.Array(Type.String()),
      slots: count,
      running_jobs: count,
      decode_tps: Type.Union([Type.Number(), Type.Null()]),
      requests_served: count,
      tokens_generated: count,
      connected_at: time,
    }),
    Type.Null(),
  ]),
});
export type ConsoleMachine = Static<typeof ConsoleMachineSchema>;
export const ConsoleMachineListSchema = Type.Object({ data: Type.Array(ConsoleMachineSchema) });
export type ConsoleMachineList = Static<typeof ConsoleMachineListSchema>;

/** `GET /console/v1/device-codes/{user_code}`, `POST …/approve`, `POST …/deny`: a machine that waits to be linked (RFC 8628). */
export const ConsoleDeviceCodeSchema = Type.Object({
  /** Code that the user compares, such as `WDJB-MJHT`. */
  user_code: Type.String({ pattern: '^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$' }),
  /** Name that the machine reports; not verified. */
  machine_name: Type.String(),
  chip_name: Type.Union([Type.String(), Type.Null()]),
  /** IP address of the request. */
  address: Type.Union([Type.String(), Type.Null()]),
  requested_at: time,
  expires_at: time,
  state: Type.Union([Type.Literal('waiting'), Type.Literal('approved'), Type.Literal('denied'), Type.Literal('expired')]),
});
export type ConsoleDeviceCode = Static<typeof ConsoleDeviceCodeSchema>;

/** `DELETE /console/v1/machines/{provider_id}`: the machine is unlinked, and its token revoked. */
export const ConsoleUnlinkedMachineSchema = Type.Object({ provider_id: Type.String(), unlinked: Type.Literal(true) });
