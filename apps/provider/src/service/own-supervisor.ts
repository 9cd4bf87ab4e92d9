/**
 * `OwnSupervisor`: service manager where launchd and systemd are missing (containers, CI).
 *
 * Starts a small supervisor process (`supervisor/main.ts`), which runs the daemon until `stop`, and does not start at boot.
 */
import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { createRequire } from 'node:module';
import { setTimeout as delay } from 'node:timers/promises';
import Type, { type Static } from 'typebox';
import { Check } from 'typebox/value';
import { ControlError, requestDaemon } from '../control/control-client.js';
import { serviceEnvironment } from './environment.js';
import { type ServiceDefinition, ServiceError, type ServiceManager, type ServiceState } from './service.js';

/** Resolved through package.json, so that sources (tests) and build find the same file. */
const ENTRY = createRequire(import.meta.url).resolve('#supervisor');
const SOCKET = 'supervisor.sock';
const ANSWER_MS = 15_000;
const START_MS = 60_000;
/** Maximum time between the exits of daemon and supervisor. */
const SUPERVISOR_EXIT_MS = 20_000;

const nullable = <Schema extends Parameters<typeof Type.Union>[0][number]>(schema: Schema) => Type.Union([schema, Type.Null()]);
const StateSchema = Type.Object({
  pid: Type.Integer(),
  command: Type.Array(Type.String()),
  child: nullable(
    Type.Object({
      pid: nullable(Type.Integer()),
      restarts: Type.Integer(),
      last_exit: nullable(Type.String()),
      next_start_at: nullable(Type.Integer()),
    }),
  ),
});
type SupervisorState = Static<typeof StateSchema>;
const isState = (value: unknown): value is SupervisorState => Check(StateSchema, value);
const isAnything = (value: unknown): value is unknown => value !== undefined;

export class OwnSupervisor implements ServiceManager {
  readonly name = 'supervisor';

  constructor(
    private readonly dataDir: string,
    private readonly stopSeconds: number,
  ) {}

  async start(definition: ServiceDefinition): Promise<'started' | 'already_running'> {
    const state = await this.supervisorState();
    if (state !== null) {
      const isRunning = state.child?.pid !== null && state.child?.pid !== undefined;
      if (isRunning && JSON.stringify(state.command) === JSON.stringify(definition.command)) return 'already_running';
      // The daemon waits for a restart, or the program moved.
      await this.stop();
    }
    await this.#launch(definition);
    return 'started';
  }

  async stop(): Promise<'stopped' | 'was_not_running'> {
    const state = await this.supervisorState();
    if (state === null) return 'was_not_running';
    try {
      await requestDaemon(this.dataDir, { path: '/v1/stop', body: {} }, isAnything, (this.stopSeconds + 5) * 1000, SOCKET);
    } catch (error) {
      if (!(error instanceof ControlError)) throw error;
      // After other failures, the supervisor may be ending already.
      if (error.problem === 'no_answer' && (await this.supervisorState()) !== null)
        throw new ServiceError('the supervisor of the provider is not responding');
    }
    await this.#waitUntil(
      async () => (await this.supervisorState()) === null,
      SUPERVISOR_EXIT_MS,
      "the provider's supervisor did not stop in time",
    );
    return 'stopped';
  }

  async restart(definition: ServiceDefinition): Promise<void> {
    await this.stop();
    await this.#launch(definition);
  }

  async remove(): Promise<void> {
    await this.stop();
  }

  async state(): Promise<ServiceState> {
    const state = await this.supervisorState();
    if (state === null) return { kind: 'not_running' };
    return state.child?.pid == null
      ? { kind: 'waiting', lastExit: state.child?.last_exit ?? null }
      : { kind: 'running', pid: state.child.pid };
  }

  async advice(): Promise<readonly string[]> {
    return ['This machine has no service manager. Start the provider again after each restart.'];
  }

  /** Null if no supervisor runs. Throws {@link ServiceError} without an answer. */
  async supervisorState(): Promise<SupervisorState | null> {
    try {
      return await requestDaemon(this.dataDir, { path: '/v1/state' }, isState, ANSWER_MS, SOCKET);
    } catch (error) {
      if (error instanceof ControlError && error.problem === 'not_running') return null;
      throw error instanceof ControlError ? new ServiceError('the supervisor of the provider is not responding') : error;
    }
  }

  async #launch(definition: ServiceDefinition): Promise<void> {
    const output = openSync(definition.outputFile, 'a', 0o600);
    const child = spawn(process.execPath, [ENTRY, JSON.stringify(definition)], {
      cwd: definition.dataDir,
      env: serviceEnvironment(definition.environment),
      detached: true,
      stdio: ['ignore', output, output],
    });
    closeSync(output);
    let failed: string | null = null;
    child.once('error', (error) => (failed = error.message));
    child.unref();
    const isUp = async (): Promise<boolean> => {
      if (failed !== null) throw new ServiceError(`the provider's supervisor could not be started: ${failed}`);
      return (await this.supervisorState()) !== null;
    };
    await this.#waitUntil(isUp, START_MS, "the provider's supervisor failed to start");
  }

  async #waitUntil(isSo: () => Promise<boolean>, ms: number, sentence: string): Promise<void> {
    const deadline = performance.now() + ms;
    while (!(await isSo())) {
      if (performance.now() > deadline) throw new ServiceError(sentence);
      await delay(50);
    }
  }
}
