/**
 * Remote control: the owner of a linked machine changes its settings from the console.
 *
 * The coordinator sends one action at a time. The machine applies or refuses the action, and answers with its current settings. A
 * setting made on the machine takes precedence over the console.
 */
import Type, { type Static } from 'typebox';
import { MillisecondsSchema } from '../ids.js';
import { ModelOfferSchema } from './model-offer.js';

/** Versions of remote control in this build, newest first. */
export const REMOTE_CONTROL_VERSIONS: readonly number[] = [1];

/** Maximum length of a schedule as the owner writes it. */
const MAX_SCHEDULE_LENGTH = 2048;
/** Maximum length of a normalized schedule: enough for 64 windows with all days. */
const MAX_WINDOWS_LENGTH = 4096;
/** Maximum models that {@link MachineSettingsSchema} lists. */
export const MAX_SETTINGS_MODELS = 64;
const CommandIdSchema = Type.String({ pattern: '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$' });
const Code = Type.String({ pattern: '^[a-z0-9_]{1,64}$' });
const nullable = <Schema extends Parameters<typeof Type.Union>[0][number]>(schema: Schema) => Type.Union([schema, Type.Null()]);
const CLOSED = { additionalProperties: false } as const;

export const VersionsSchema = Type.Array(Type.Integer({ minimum: 1 }), { minItems: 1, maxItems: 16 });

/** Part of `register`. `allowed`: the owner permits commands from the console, by a setting on the machine. */
export const RemoteControlSchema = Type.Object({ versions: VersionsSchema, allowed: Type.Boolean() });

/** Actions on a machine's settings. Machines refuse any other action. */
export const OwnerActionSchema = Type.Union([
  /** `until`: end of the pause; null: until `resume`. */
  Type.Object({ kind: Type.Literal('pause'), until: nullable(MillisecondsSchema) }, CLOSED),
  Type.Object({ kind: Type.Literal('resume') }, CLOSED),
  /** `schedule` as in `inference-provider schedule set`; empty: always. */
  Type.Object({ kind: Type.Literal('set_schedule'), schedule: Type.String({ maxLength: MAX_SCHEDULE_LENGTH }) }, CLOSED),
  /** Starts or stops serving a model that is on the machine's disk. */
  Type.Object({ kind: Type.Literal('set_model'), model: ModelOfferSchema.properties.id, served: Type.Boolean() }, CLOSED),
]);
export type OwnerAction = Static<typeof OwnerActionSchema>;

/** Coordinator → provider. Sent only to machines that registered `remote_control`. */
export const OwnerCommandSchema = Type.Object({
  type: Type.Literal('owner_command'),
  /**
   * Idempotency key: a repeated command is not applied again, and gets the first outcome with the current settings. Refusals
   * `expired` and `too_many_commands` are not remembered.
   */
  command_id: CommandIdSchema,
  /** Coordinator's time after which the machine refuses the command. */
  expires_at: MillisecondsSchema,
  /** A newer coordinator may send other kinds, which the machine refuses. {@link OwnerActionSchema} validates the rest. */
  action: Type.Object({ kind: Code }),
});
export type OwnerCommand = Static<typeof OwnerCommandSchema>;

/** Reasons for refusing a command. Newer agents may add reasons. */
export const OWNER_COMMAND_REFUSALS = [
  /** The owner turned remote control off on the machine. */
  'remote_control_off',
  /** The machine is not signed in to an account. */
  'not_linked',
  'expired',
  /** More commands than the machine accepts per minute. */
  'too_many_commands',
  /** The kind of action is unknown, or its members are invalid. */
  'not_supported',
  /** The pause was set on the machine itself, and can be changed only there. */
  'paused_on_machine',
  /** The time is in the past, or more than 30 days ahead. */
  'time_invalid',
  'schedule_invalid',
  /** The settings file on the machine contains an error. */
  'settings_invalid',
  /** The change could not be written to disk. */
  'not_stored',
  /** No such model is on the machine's disk. */
  'model_unknown',
  /** The model does not fit into the memory, or its file cannot be read. */
  'model_not_servable',
  /** The machine would serve no model. */
  'last_model',
  /** The agent's command line sets the models. */
  'models_fixed',
] as const;
export type OwnerCommandRefusal = (typeof OWNER_COMMAND_REFUSALS)[number];

/** Settings of a machine that its owner sees and changes in the console. */
export const MachineSettingsSchema = Type.Object({
  /** Whether the owner permits commands from the console. */
  remote_control: Type.Boolean(),
  pause: nullable(
    Type.Object({
      /** `machine`: set on the machine, so the console cannot end the pause. */
      by: Type.Union([Type.Literal('machine'), Type.Literal('console')]),
      until: nullable(MillisecondsSchema),
    }),
  ),
  /** `windows` as in `inference-provider schedule set`; empty: always. */
  schedule: Type.Object({
    windows: Type.String({ maxLength: MAX_WINDOWS_LENGTH, pattern: '^[a-z0-9:, -]*$' }),
    /** IANA name, or an offset such as `GMT+03:00`. */
    time_zone: Type.String({ pattern: '^[A-Za-z][A-Za-z0-9_+:/-]{0,63}$' }),
  }),
  /** Models on the machine's disk. */
  models: Type.Array(
    Type.Object({
      id: ModelOfferSchema.properties.id,
      served: Type.Boolean(),
      bytes: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
    }),
    { maxItems: MAX_SETTINGS_MODELS },
  ),
  /** Whether the agent's command line sets the models, so that the console cannot change them. */
  models_fixed: Type.Boolean(),
});
export type MachineSettings = Static<typeof MachineSettingsSchema>;

/** Provider → coordinator: sent after registration and on changes, to coordinators that announced remote control in `welcome`. */
export const MachineSettingsMessageSchema = Type.Object({ type: Type.Literal('machine_settings'), settings: MachineSettingsSchema });

/** Provider → coordinator: answer to a command, with the settings that result. */
export const OwnerCommandResultSchema = Type.Object({
  type: Type.Literal('owner_command_result'),
  command_id: CommandIdSchema,
  /** One of {@link OWNER_COMMAND_REFUSALS}; null: the command was applied. */
  refusal: nullable(Code),
  settings: MachineSettingsSchema,
});
export type OwnerCommandResult = Static<typeof OwnerCommandResultSchema>;
