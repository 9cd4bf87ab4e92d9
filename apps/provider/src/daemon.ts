/**
 * The provider's daemon: the only place that wires model, engine, enclave and coordinator together. Whatever starts here
 * is ended here, and what went wrong on the way is told once.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Enclave, type EnclaveEvent, nativeHelperCommand, openEnclave, simulatedHelperCommand } from '@inference/enclave';
import type { Hardware, ModelOffer } from '@inference/protocol';
import { providerIdOf } from '@inference/protocol/crypto';
import type { Logger } from 'pino';
import { Engine, type EngineEvent } from './engine/engine.js';
import { type HostFacts, readHostFacts } from './host/host-facts.js';
import { planCapacity } from './models/capacity.js';
import { type ModelFacts, readModelFacts } from './models/model-facts.js';
import type { Session } from './session/session.js';
import { type SessionEvent, stayConnected } from './session/stay-connected.js';
import { StartError } from './start-error.js';
import { agentVersion } from './version.js';
import { type JobEvent, Jobs } from './work/jobs.js';

export interface DaemonOptions {
  /** WebSocket address of the coordinator's provider socket. */
  readonly socketUrl: string;
  readonly dataDir: string;
  readonly modelPath: string;
  readonly simulatedEnclave: boolean;
  readonly slots: number | null;
  readonly context: number | null;
  readonly log: Logger;
}

/** Time that running jobs get when the daemon stops, in milliseconds. */
const DRAIN_MS = 5_000;

export class Daemon {
  readonly #leave = new AbortController();
  #jobs: Jobs | null = null;
  #session: Session | null = null;
  #connected: Promise<void> = Promise.resolve();

  private constructor(
    private readonly options: DaemonOptions,
    private readonly model: ModelFacts,
    private readonly host: HostFacts,
    private readonly engine: Engine,
    private readonly enclave: Enclave,
  ) {}

  /** Loads the model, opens the enclave and connects. Throws errors that `startSentence` words for the owner. */
  static async start(options: DaemonOptions, signal: AbortSignal): Promise<Daemon> {
    const { log } = options;
    makeDataDir(options.dataDir);
    const command = helperCommand(options);
    const model = readModelFacts(options.modelPath);
    const host = await readHostFacts();
    const capacity = planCapacity(model, { slots: options.slots, context: options.context, totalMemory: host.memoryBytes });
    let daemon: Daemon | null = null;
    const engine = await Engine.start(
      {
        settings: { modelPath: model.path, ...capacity, gpu: process.platform === 'darwin' ? 'auto' : 'none' },
        onEvent: (event) => {
          logEngine(log, event);
          if (event.type !== 'output') daemon?.announceModels();
        },
      },
      signal,
    );
    let enclave: Enclave;
    try {
      enclave = await openEnclave({ command, onEvent: (event) => logEnclave(log, event) });
    } catch (error) {
      await engine.close();
      throw error;
    }
    daemon = new Daemon(options, model, host, engine, enclave);
    daemon.#connect();
    return daemon;
  }

  /** Takes no more jobs, lets running ones finish for a while, and ends every child process. */
  async stop(): Promise<void> {
    if (this.#session?.registered === true) await this.#jobs?.drain(DRAIN_MS);
    this.#leave.abort();
    await this.#connected;
    await Promise.all([this.engine.close(), this.enclave.close()]);
  }

  /** Tells the coordinator what is served at this moment: nothing while the engine is down. */
  announceModels(): void {
    if (this.#session?.registered === true) this.#session.send({ type: 'models', models: this.#offers() });
  }

  #connect(): void {
    const { log, socketUrl } = this.options;
    const providerId = providerIdOf(this.enclave.publicKey);
    log.info(
      { event: 'starting', provider_id: providerId, model: this.model.id, slots: this.#slots, coordinator: socketUrl },
      'provider is starting',
    );
    this.#connected = stayConnected(
      {
        url: socketUrl,
        enclave: this.enclave,
        presence: {
          agentVersion: agentVersion(),
          hardware: hardwareOf(this.host),
          models: () => this.#offers(),
          slots: this.#slots,
        },
        intake: (session, keys) => {
          this.#session = session;
          this.#jobs = new Jobs({
            providerId,
            keys,
            enclave: this.enclave,
            thinkTags: this.model.thinkTags,
            slots: this.#slots,
            modelIds: () => new Set(this.#offers().map(({ id }) => id)),
            generate: (request) => this.engine.generate(request),
            send: (message) => session.send(message),
            sendFrame: (bytes, sent) => session.sendFrame(bytes, sent),
            onEnd: (event) => logJob(log, event),
          });
          return this.#jobs;
        },
        onRegistered: (_session, trustLevel) => {
          log.info({ event: 'registered', trust_level: trustLevel }, 'registered with the coordinator');
          // The engine may have come or gone between the register message and its answer.
          this.announceModels();
        },
        onClockSkew: (ms) =>
          log.warn({ event: 'clock_skew', ms }, "the clock of this machine differs from the coordinator's; jobs may be refused as expired"),
        onEvent: (event) => logSession(log, event),
      },
      this.#leave.signal,
    );
  }

  get #slots(): number {
    return this.engine.facts?.slots ?? 1;
  }

  #offers(): ModelOffer[] {
    const { facts } = this.engine;
    if (facts === null) return [];
    return [
      {
        id: this.model.id,
        model_type: 'text',
        display_name: this.model.displayName,
        quantization: this.model.quantization,
        context_length: facts.contextSize,
      },
    ];
  }
}

function helperCommand(options: DaemonOptions): readonly string[] {
  const dataDir = join(options.dataDir, 'enclave');
  if (options.simulatedEnclave) return simulatedHelperCommand({ dataDir });
  if (process.platform !== 'darwin') {
    throw new StartError('there is no Secure Enclave on this machine; for a simulated network start with --simulated-enclave');
  }
  const command = nativeHelperCommand({ dataDir });
  if (command === null) throw new StartError('the enclave helper has not been built; build it first, or start with --simulated-enclave');
  return command;
}

function makeDataDir(dataDir: string): void {
  try {
    mkdirSync(join(dataDir, 'enclave'), { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new StartError(`the data directory ${dataDir} cannot be written (${(error as NodeJS.ErrnoException).code})`);
  }
}

function hardwareOf(host: HostFacts): Hardware {
  return { chip_family: host.chipFamily, cpu_cores: host.cpuCores, gpu_cores: host.gpuCores, bandwidth_gbs: host.bandwidthGbs };
}

function logEngine(log: Logger, event: EngineEvent): void {
  switch (event.type) {
    case 'ready':
      log.info({ event: 'engine_ready', ...event.facts }, 'the engine has loaded the model');
      return;
    case 'output':
      log.debug({ event: 'engine_output', line: event.line }, 'the engine says');
      return;
    case 'died':
      log.error({ event: 'engine_died', reason: event.reason, retry_in_ms: event.retryInMs }, 'the engine died and is started again');
      return;
    default:
      event satisfies never;
  }
}

function logEnclave(log: Logger, event: EnclaveEvent): void {
  switch (event.type) {
    case 'started':
      log.info({ event: 'enclave_started', kind: event.kind, version: event.version }, 'the enclave helper is running');
      return;
    case 'stderr':
      log.warn({ event: 'enclave_stderr', line: event.line }, 'the enclave helper says');
      return;
    case 'ended':
      if (event.reason.code !== 'closed') log.error({ event: 'enclave_ended', code: event.reason.code }, 'the enclave helper ended');
      return;
    case 'restarting':
      log.warn({ event: 'enclave_restarting', delay_ms: event.delayMs }, 'the enclave helper is started again');
      return;
    case 'failed_closed':
      log.fatal({ event: 'enclave_failed', code: event.reason.code }, 'the enclave cannot be used any more');
      return;
    default:
      event satisfies never;
  }
}

function logSession(log: Logger, event: SessionEvent): void {
  if (event.type === 'lost') {
    log.warn({ event: 'disconnected', reason: event.reason, retry_in_ms: event.retryInMs }, 'not connected to the coordinator');
    return;
  }
  const { code, message, advice, retryInMs } = event;
  log.error(
    { event: 'rejected', code, detail: message, retry_in_ms: retryInMs },
    `the coordinator ended the session: ${code}. ${advice}`.trim(),
  );
}

function logJob(log: Logger, { jobId, end, milliseconds }: JobEvent): void {
  const common = { event: 'job', job_id: jobId, ms: Math.round(milliseconds) };
  if (end.kind === 'completed') {
    const { usage, finishReason } = end.answered;
    log.info({ ...common, outcome: 'completed', finish_reason: finishReason, ...usage }, 'job completed');
    return;
  }
  // An unexpected error shows where it arose; its message could hold words of a prompt, so it stays out.
  const stack = end.cause instanceof Error ? end.cause.stack?.split('\n').slice(1, 4).join(' ') : undefined;
  log[end.failure.code === 'cancelled' ? 'info' : 'warn'](
    { ...common, outcome: end.failure.code, ...(stack === undefined ? {} : { stack }) },
    'job failed',
  );
}
