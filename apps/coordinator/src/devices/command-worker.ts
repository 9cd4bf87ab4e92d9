/**
 * `CommandWorker` sends device-management commands when {@link decide} says so, and stores each command before it is sent.
 *
 * In a cluster, a lock keeps two coordinators from sending the same command.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { fromBase64, toBase64 } from '@inference/protocol';
import { endCommand, recordCommand } from '../database/devices/device-command-repository.js';
import { storeNonce } from '../database/devices/device-evidence-repository.js';
import type { Enrolment } from '../database/devices/enrolment-repository.js';
import { runExclusively } from '../database/periodic-work.js';
import type { Database } from '../database/tables.js';
import { deviceNonce, noncePreimage, weeklyEpoch } from '../providers/verification/chain/freshness.js';
import { type CommandOutcome, type Decision, decide, type ScheduleRules } from './command-policy.js';
import { COMMAND_KINDS, type CommandKind, type DeviceCommand } from './commands.js';
import type { DeviceEvidenceCache, WatchedDevice } from './device-evidence-cache.js';
import { type ManagementClient, ManagementError } from './management-client.js';

interface CommandWorkerOptions {
  readonly database: Database;
  readonly evidence: DeviceEvidenceCache;
  readonly client: Pick<ManagementClient, 'enqueue'>;
  readonly rules: ScheduleRules;
  readonly now: () => number;
  /** Receives failures that are not caused by a device. */
  readonly onError: (error: unknown) => void;
  readonly tickMs: number;
  /** Whether other coordinators exist. A device that moves between coordinators is then briefly watched by two. */
  readonly hasPeers: boolean;
}

const MAX_CONCURRENT_SENDS = 8;
/** Interval after which cached evidence is reloaded and verified again. */
const REREAD_MS = 10 * 60_000;

export class CommandWorker {
  readonly #options: CommandWorkerOptions;
  readonly #stop = new AbortController();
  /** Key: enrolment id and kind of command. */
  readonly #sending = new Map<string, Promise<void>>();
  readonly #timer: NodeJS.Timeout;

  constructor(options: CommandWorkerOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.tick(), options.tickMs);
    this.#timer.unref();
  }

  tick(): void {
    const { evidence, now } = this.#options;
    for (const device of evidence.watched()) {
      if (now() - device.readAt >= REREAD_MS) void evidence.refresh(device.seKeySha256);
      this.consider(device);
    }
  }

  consider(device: WatchedDevice): void {
    const { enrolment } = device;
    if (enrolment?.state !== 'active' || enrolment.deviceId === null || this.#stop.signal.aborted) return;
    for (const kind of COMMAND_KINDS) {
      const name = `${enrolment.id} ${kind}`;
      if (this.#sending.has(name) || this.#sending.size >= MAX_CONCURRENT_SENDS) continue;
      if (this.decision(device, kind).act !== 'send') continue;
      const { deviceId } = enrolment;
      const send = (): Promise<void> => this.#send(enrolment, deviceId, kind);
      const sending = (this.#options.hasPeers ? this.#sendAlone(device.seKeySha256, kind, name, send) : send())
        .catch(this.#options.onError)
        .then(() => this.#options.evidence.refresh(enrolment.seKeySha256))
        .finally(() => this.#sending.delete(name));
      this.#sending.set(name, sending);
    }
  }

  decision(device: WatchedDevice, kind: CommandKind): Decision {
    return decide(
      {
        kind,
        history: device.commands.filter((command) => command.kind === kind),
        certifiedAt: device.certifiedAt,
        reconnectedAt: device.reconnectedAt,
      },
      this.#options.now(),
      this.#options.rules,
    );
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#stop.abort();
    await Promise.all(this.#sending.values());
  }

  /** Calls `send`, unless another coordinator is sending the command or has sent it, or the commands cannot be read. */
  async #sendAlone(seKeySha256: string, kind: CommandKind, name: string, send: () => Promise<void>): Promise<void> {
    const { database, evidence, now } = this.#options;
    await runExclusively(database, `device command ${name}`, async () => {
      const since = now();
      await evidence.refresh(seKeySha256);
      const device = evidence.device(seKeySha256);
      if (device !== null && device.readAt >= since && this.decision(device, kind).act === 'send') await send();
    });
  }

  async #send(enrolment: Enrolment, deviceId: string, kind: CommandKind): Promise<void> {
    const { database, client, now, rules } = this.#options;
    const command = await this.#command(enrolment, kind);
    const sentAt = now();
    const record = { uuid: command.uuid, kind, sentAt, expiresAt: sentAt + rules.commandLifetimeMs, endedAt: null, outcome: null };
    await recordCommand(database, { ...record, enrolmentId: enrolment.id });
    try {
      await client.enqueue(deviceId, command, this.#stop.signal);
    } catch (error) {
      const outcome: CommandOutcome = 'not_sent';
      await endCommand(database, command.uuid, outcome, now());
      // Aborted by `close`: no failure to report.
      if (!(error instanceof ManagementError) || !this.#stop.signal.aborted) throw error;
    }
  }

  async #command(enrolment: Enrolment, kind: CommandKind): Promise<DeviceCommand> {
    const uuid = randomUUID().toUpperCase();
    if (kind === 'security_info') return { kind, uuid };
    const { database, now } = this.#options;
    const fresh = { epoch: weeklyEpoch(now()), random: toBase64(randomBytes(16)) };
    const stored = await storeNonce(database, enrolment.seKeySha256, fresh, now());
    const nonce = deviceNonce(noncePreimage(fromBase64(enrolment.sePublicKey), stored.epoch, fromBase64(stored.random)));
    if (nonce === null) throw new Error('the nonce of an enclave key cannot be made');
    return { kind, uuid, nonce };
  }
}
