/** What a daemon tells its owner's commands about itself, over its control socket. Times in milliseconds since 1970. */
import { AVAILABILITY_STATES, ProviderStatusSchema, TrustSchema } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';

const nullable = <Schema extends Parameters<typeof Type.Union>[0][number]>(schema: Schema) => Type.Union([schema, Type.Null()]);

export const AvailabilityStatusSchema = Type.Object({
  state: Type.Enum([...AVAILABILITY_STATES]),
  /** Why it takes no jobs: codes for programs, sentences for the owner. None while it serves. */
  reasons: Type.Array(Type.Object({ code: Type.String(), text: Type.String(), until: nullable(Type.Integer()) })),
  /** When this will be another one if only time passes; null: not known. */
  next_change_at: nullable(Type.Integer()),
  /** The owner's pause; null: there is none. */
  pause: nullable(Type.Object({ until: nullable(Type.Integer()) })),
  /** Whether the system is kept from going to sleep by itself. */
  keeps_awake: Type.Boolean(),
});
export type AvailabilityStatus = Static<typeof AvailabilityStatusSchema>;

export const DaemonStatusSchema = Type.Object({
  version: Type.String(),
  pid: Type.Integer(),
  started_at: Type.Integer(),
  /** `starting`: the model is being loaded. */
  state: Type.Enum(['starting', 'running', 'stopping']),
  data_dir: Type.String(),
  coordinator: Type.String(),
  simulated_enclave: Type.Boolean(),
  provider_id: nullable(Type.String()),
  connection: Type.Object({
    state: Type.Enum(['connected', 'not_connected']),
    since: Type.Integer(),
    /** Why the last connection ended or was refused; null before the first end. */
    problem: nullable(Type.String()),
    retry_at: nullable(Type.Integer()),
  }),
  /** This machine's clock less the coordinator's, at the last connection. */
  clock_skew_ms: nullable(Type.Integer()),
  trust: nullable(TrustSchema),
  engine: Type.Enum(['starting', 'ready', 'down']),
  models: Type.Array(Type.Object({ id: Type.String(), context_length: Type.Integer() })),
  /** Files of the models that it was started with, served or not. */
  model_files: Type.Array(Type.String()),
  slots: Type.Integer(),
  /** Null while it starts. */
  availability: nullable(AvailabilityStatusSchema),
  running_jobs: Type.Integer(),
  jobs: Type.Object({ completed: Type.Integer(), failed: Type.Integer(), cancelled: Type.Integer() }),
  /** What the machine is, and the newest rates of one stream, in tokens per second; null: not known. */
  hardware: Type.Optional(
    Type.Object({
      chip: Type.String(),
      chip_family: Type.String(),
      cpu_cores: Type.Integer(),
      performance_cores: nullable(Type.Integer()),
      efficiency_cores: nullable(Type.Integer()),
      /** 0: not known; so are the next two. */
      gpu_cores: Type.Integer(),
      memory_bytes: Type.Integer(),
      bandwidth_gbs: Type.Number(),
      /** Empty: not known; so are the next two. */
      os: Type.String(),
      model_identifier: Type.String(),
      serial_number: Type.String(),
      decode_tps: nullable(Type.Number()),
      prefill_tps: nullable(Type.Number()),
    }),
  ),
  host: Type.Object({ thermal: Type.String(), memory_pressure: Type.String(), power: Type.String() }),
  /** The file of settings, and whether what it says holds. */
  settings: Type.Object({
    path: Type.String(),
    read_at: Type.Integer(),
    problem: nullable(Type.String()),
    needs_restart: Type.Array(Type.String()),
  }),
  hardening: Type.Object({
    core_dumps: Type.Enum(['off', 'on', 'unknown']),
    /** What keeps the network from the processes that hold a model. */
    engine_network: Type.Enum(['network_namespace', 'sandbox', 'none']),
    engine_network_problem: nullable(Type.String()),
  }),
  /** What the coordinator says; null where it did not answer, and then why. */
  coordinator_view: nullable(ProviderStatusSchema),
  coordinator_problem: nullable(Type.String()),
});
export type DaemonStatus = Static<typeof DaemonStatusSchema>;

export const EnclaveCheckSchema = Type.Object({
  usable: Type.Boolean(),
  kind: nullable(Type.String()),
  problem: nullable(Type.String()),
});
export type EnclaveCheck = Static<typeof EnclaveCheckSchema>;

const status = Compile(DaemonStatusSchema);
const enclaveCheck = Compile(EnclaveCheckSchema);

export const isDaemonStatus = (value: unknown): value is DaemonStatus => status.Check(value);
export const isEnclaveCheck = (value: unknown): value is EnclaveCheck => enclaveCheck.Check(value);
