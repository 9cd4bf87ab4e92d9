/** Schemas of the daemon's answers to commands: status, enclave check, account link. Times in milliseconds since 1970. */
import { AVAILABILITY_STATES, lazyValidator, ProviderStatusSchema, TrustSchema } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { type LinkStatus, LinkStatusSchema } from './link-status.js';

const nullable = <Schema extends Parameters<typeof Type.Union>[0][number]>(schema: Schema) => Type.Union([schema, Type.Null()]);

export const AvailabilityStatusSchema = Type.Object({
  state: Type.Enum([...AVAILABILITY_STATES]),
  /** Reasons why no jobs are accepted: codes for programs, sentences for the owner. Empty while serving. */
  reasons: Type.Array(Type.Object({ code: Type.String(), text: Type.String(), until: nullable(Type.Integer()) })),
  /** Time of the next change that is known in advance, such as the end of a pause. Null if unknown. */
  next_change_at: nullable(Type.Integer()),
  /** The owner's pause; null if none. */
  pause: nullable(
    Type.Object({
      until: nullable(Type.Integer()),
      /** Present if the pause was set from the console. `account` is a name, or null if unknown. */
      console: Type.Optional(Type.Object({ at: Type.Integer(), account: nullable(Type.String()) })),
    }),
  ),
  /** Whether the agent prevents system sleep. */
  keeps_awake: Type.Boolean(),
});
export type AvailabilityStatus = Static<typeof AvailabilityStatusSchema>;

const RemoteControlStatusSchema = Type.Object({
  allowed: Type.Boolean(),
  /** Last command from the console since the daemon started. `refusal` is null if it was executed, `account` if unknown. */
  last: nullable(
    Type.Object({ at: Type.Integer(), kind: Type.String(), refusal: nullable(Type.String()), account: nullable(Type.String()) }),
  ),
});
export type RemoteControlStatus = Static<typeof RemoteControlStatusSchema>;

const DaemonStatusSchema = Type.Object({
  version: Type.String(),
  pid: Type.Integer(),
  started_at: Type.Integer(),
  /** The daemon is `starting` until models and enclave are ready. */
  state: Type.Enum(['starting', 'running', 'stopping']),
  data_dir: Type.String(),
  coordinator: Type.String(),
  simulated_enclave: Type.Boolean(),
  provider_id: nullable(Type.String()),
  connection: Type.Object({
    state: Type.Enum(['connected', 'not_connected']),
    since: Type.Integer(),
    /** Reason why the connection ended or was refused; null while connected and before the first end. */
    problem: nullable(Type.String()),
    retry_at: nullable(Type.Integer()),
  }),
  /** This machine's clock minus the coordinator's, at the last connection. */
  clock_skew_ms: nullable(Type.Integer()),
  trust: nullable(TrustSchema),
  /** Enrolment in device management; absent before a request and its answer. */
  enrolment: Type.Optional(
    Type.Union([
      Type.Object({ state: Type.Literal('offered'), url: Type.String(), expires_at: Type.Integer() }),
      Type.Object({ state: Type.Literal('refused'), reason: Type.String() }),
    ]),
  ),
  account: LinkStatusSchema,
  /** `ready` if at least one model is offered, `starting` while the daemon starts. */
  engine: Type.Enum(['starting', 'ready', 'down']),
  models: Type.Array(
    Type.Object({
      id: Type.String(),
      context_length: Type.Integer(),
      /** Whether the model reads images. Earlier versions omit the member. */
      vision: Type.Optional(Type.Boolean()),
      /** Element type of the KV cache. Absent for other models than text models, and from earlier versions. */
      kv_cache_type: Type.Optional(Type.String()),
    }),
  ),
  /** Model files chosen at the start, served or not. */
  model_files: Type.Array(Type.String()),
  slots: Type.Integer(),
  /** Null while starting. */
  availability: nullable(AvailabilityStatusSchema),
  running_jobs: Type.Integer(),
  jobs: Type.Object({ completed: Type.Integer(), failed: Type.Integer(), cancelled: Type.Integer() }),
  /** Absent while starting. The latest measured rates of one stream, `*_tps`, are in tokens per second, or null. */
  hardware: Type.Optional(
    Type.Object({
      chip: Type.String(),
      chip_family: Type.String(),
      cpu_cores: Type.Integer(),
      performance_cores: nullable(Type.Integer()),
      efficiency_cores: nullable(Type.Integer()),
      /** Zero if unknown, like `memory_bytes` and `bandwidth_gbs`. */
      gpu_cores: Type.Integer(),
      memory_bytes: Type.Integer(),
      bandwidth_gbs: Type.Number(),
      /** Empty if unknown, like `model_identifier` and `serial_number`. */
      os: Type.String(),
      model_identifier: Type.String(),
      serial_number: Type.String(),
      decode_tps: nullable(Type.Number()),
      prefill_tps: nullable(Type.Number()),
    }),
  ),
  host: Type.Object({ thermal: Type.String(), memory_pressure: Type.String(), power: Type.String() }),
  /** Settings file. The current settings were read at `read_at`. A later version may have been rejected because of `problem`. */
  settings: Type.Object({
    path: Type.String(),
    read_at: Type.Integer(),
    problem: nullable(Type.String()),
    needs_restart: Type.Array(Type.String()),
  }),
  hardening: Type.Object({
    core_dumps: Type.Enum(['off', 'on', 'unknown']),
    /** Network confinement of the model processes. */
    engine_network: Type.Enum(['network_namespace', 'sandbox', 'none']),
    engine_network_problem: nullable(Type.String()),
  }),
  /** Newer version that is not offered to this machine yet, or null. Absent while starting, and from earlier versions. */
  update: Type.Optional(nullable(Type.Object({ version: Type.String(), text: Type.String() }))),
  /** Commands from the console; absent while starting. */
  remote_control: Type.Optional(RemoteControlStatusSchema),
  /** The coordinator's status of this provider. If null, `coordinator_problem` has the reason. */
  coordinator_view: nullable(ProviderStatusSchema),
  coordinator_problem: nullable(Type.String()),
});
export type DaemonStatus = Static<typeof DaemonStatusSchema>;

const EnclaveCheckSchema = Type.Object({ usable: Type.Boolean(), kind: nullable(Type.String()), problem: nullable(Type.String()) });
export type EnclaveCheck = Static<typeof EnclaveCheckSchema>;

const status = lazyValidator(DaemonStatusSchema);
const linkStatus = lazyValidator(LinkStatusSchema);
const enclaveCheck = lazyValidator(EnclaveCheckSchema);

export const isLinkStatus = (value: unknown): value is LinkStatus => linkStatus().Check(value);
export const isDaemonStatus = (value: unknown): value is DaemonStatus => status().Check(value);
export const isEnclaveCheck = (value: unknown): value is EnclaveCheck => enclaveCheck().Check(value);
