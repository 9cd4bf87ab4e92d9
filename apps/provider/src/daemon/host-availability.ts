/**
 * `HostAvailability`: whether this machine accepts jobs now. Reads the sensors, keeps the owner's pause, and drives an
 * {@link AvailabilityController}.
 *
 * Prevents system sleep unless this machine is away.
 */
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { ReportedAvailability } from '@inference/protocol';
import type { Config } from '../config/config.js';
import type { AvailabilityStatus } from '../control/daemon-status.js';
import { writePrivateFile } from '../files/private-file.js';
import { availability, type Pause, stressOf } from '../host/availability/availability.js';
import { AvailabilityController, type CurrentAvailability } from '../host/availability/availability-controller.js';
import { COOLDOWN_MS, type Cooldowns, NO_COOLDOWNS, nextCooldowns } from '../host/availability/cooldowns.js';
import { pauseText, readPause } from '../host/availability/pause.js';
import { type AvailabilityPolicy, policyOf } from '../host/availability/policy.js';
import type { HostCondition } from '../host/condition/condition.js';
import { ConditionMonitor, POLL_INTERVAL_MS } from '../host/condition/condition-monitor.js';
import { OwnerActivityMonitor } from '../host/condition/owner-activity-monitor.js';
import { inhibitCommand, SleepInhibitor } from '../host/condition/sleep-inhibitor.js';
import { systemTimeZone } from '../host/condition/time-zone.js';

interface HostAvailabilityOptions {
  readonly dataDir: string;
  readonly policy: AvailabilityPolicy;
  /** Folder of a simulated machine; null for this machine. */
  readonly simulatedHost: string | null;
  readonly onCondition: (condition: HostCondition) => void;
  readonly onChange: (status: CurrentAvailability) => void;
  readonly onInhibitFailure: (reason: string) => void;
  /** Described at {@link AvailabilityController}, like `unload` and `resume`. */
  readonly drain: (force: AbortSignal, cancel: AbortSignal) => Promise<void>;
  readonly unload: () => Promise<void>;
  readonly resume: () => void;
}

/** Interval of checks for owner input. Short, because an owner who returns to the Mac must not wait. */
const OWNER_POLL_INTERVAL_MS = 5_000;
/** Maximum time between two reviews. Only a changed system clock is noticed this late; all other changes trigger a review. */
const MAX_REVIEW_INTERVAL_MS = 10_000;
/** Factor for polling and cooldowns of a simulated machine. */
const SIMULATED_SPEEDUP = 100;

export class HostAvailability {
  readonly #options: HostAvailabilityOptions;
  readonly #root: string;
  readonly #speedup: number;
  readonly #condition: ConditionMonitor;
  readonly #ownerActivity: OwnerActivityMonitor;
  readonly #sleepInhibitor: SleepInhibitor;
  readonly #controller: AvailabilityController;
  #policy: AvailabilityPolicy;
  #pause: Pause | null;
  #cooldowns: Cooldowns = NO_COOLDOWNS;

  private constructor(options: HostAvailabilityOptions, condition: ConditionMonitor, ownerActivity: OwnerActivityMonitor, speedup: number) {
    this.#options = options;
    this.#root = options.simulatedHost ?? '/';
    this.#speedup = speedup;
    this.#condition = condition;
    this.#ownerActivity = ownerActivity;
    this.#policy = options.policy;
    this.#pause = readPause(readText(pausePath(options.dataDir)), Date.now());
    this.#sleepInhibitor = new SleepInhibitor(inhibitCommand(this.#root, process.pid), options.onInhibitFailure);
    this.#controller = new AvailabilityController({
      decide: () => this.#decide(),
      drain: options.drain,
      unload: options.unload,
      resume: options.resume,
      onChange: (status) => {
        this.#sleepInhibitor.setActive(status.state !== 'away');
        options.onChange(status);
      },
      maxReviewIntervalMs: MAX_REVIEW_INTERVAL_MS,
      now: Date.now,
    });
    this.#sleepInhibitor.setActive(this.#controller.state !== 'away');
  }

  /** Resolves after the first sensor reading, so that an unavailable machine loads no model. */
  static async open(options: HostAvailabilityOptions): Promise<HostAvailability> {
    const { simulatedHost, policy } = options;
    // Without its folder, a simulated machine stays as it is, and needs no frequent checks.
    const speedup = simulatedHost === null || !existsSync(simulatedHost) ? 1 : SIMULATED_SPEEDUP;
    const source = { platform: simulatedHost === null ? process.platform : 'linux', root: simulatedHost ?? '/' } as const;
    let opened: HostAvailability | null = null;
    const condition = new ConditionMonitor(source, POLL_INTERVAL_MS / speedup, (changed) => {
      options.onCondition(changed);
      opened?.review();
    });
    // On a simulated machine, not more often than its condition.
    const ownerPollMs = Math.max(POLL_INTERVAL_MS / SIMULATED_SPEEDUP, OWNER_POLL_INTERVAL_MS / speedup);
    const ownerActivity = new OwnerActivityMonitor(source, ownerPollMs, () => opened?.review());
    await Promise.all([condition.firstReading, ownerActivity.setEnabled(policy.onlyWhenIdleMinutes !== null)]);
    opened = new HostAvailability(options, condition, ownerActivity, speedup);
    return opened;
  }

  get condition(): HostCondition {
    return this.#condition.condition;
  }

  get current(): CurrentAvailability {
    return this.#controller.status;
  }

  get isServing(): boolean {
    return this.#controller.state === 'serving';
  }

  /** For the coordinator. */
  get report(): ReportedAvailability {
    return reportedAvailability(this.current);
  }

  /** For the owner. */
  get status(): AvailabilityStatus {
    const { state, reasons, nextChangeAt } = this.current;
    return {
      state,
      reasons: reasons.map(({ code, text, until }) => ({ code, text, until: until === null ? null : Math.ceil(until) })),
      next_change_at: nextChangeAt === null ? null : Math.ceil(nextChangeAt),
      pause: this.#pause,
      keeps_awake: this.#sleepInhibitor.isActive,
    };
  }

  get pause(): Pause | null {
    return this.#pause;
  }

  get schedule(): { readonly windows: AvailabilityPolicy['windows']; readonly timeZone: string } {
    return { windows: this.#policy.windows, timeZone: this.#policy.timeZone ?? systemTimeZone(this.#root) };
  }

  review(): void {
    this.#controller.review();
  }

  /** Sets and stores the pause; null ends the pause. Throws if storing fails; the change then applies until the daemon ends. */
  setPause(pause: Pause | null): void {
    this.#pause = pause;
    this.review();
    const path = pausePath(this.#options.dataDir);
    if (pause === null) rmSync(path, { force: true });
    else writePrivateFile(path, pauseText(pause));
  }

  async applyConfig(config: Config): Promise<void> {
    this.#policy = policyOf(config);
    await this.#ownerActivity.setEnabled(this.#policy.onlyWhenIdleMinutes !== null);
    this.review();
  }

  async close(): Promise<void> {
    this.#controller.close();
    this.#sleepInhibitor.setActive(false);
    await Promise.all([this.#condition.close(), this.#ownerActivity.close()]);
  }

  #decide(): ReturnType<typeof availability> {
    const monotonicNow = performance.now();
    const now = Date.now();
    const { condition } = this.#condition;
    const cooldownMs = {
      heat: COOLDOWN_MS.heat / this.#speedup,
      memory: COOLDOWN_MS.memory / this.#speedup,
      power: COOLDOWN_MS.power / this.#speedup,
    };
    this.#cooldowns = nextCooldowns(this.#cooldowns, stressOf(this.#policy, condition), monotonicNow, cooldownMs);
    if (this.#pause?.until != null && now >= this.#pause.until) this.#endPause();
    const remaining = (until: number): number => Math.max(0, until - monotonicNow);
    const { heat, memory, power } = this.#cooldowns;
    return availability(
      this.#policy,
      {
        timeZone: systemTimeZone(this.#root),
        ownerIdleMs: this.#ownerActivity.idleMs,
        condition,
        remainingCooldowns: { heat: remaining(heat), memory: remaining(memory), power: remaining(power) },
        pause: this.#pause,
      },
      now,
    );
  }

  #endPause(): void {
    this.#pause = null;
    try {
      rmSync(pausePath(this.#options.dataDir), { force: true });
    } catch {
      // readPause ignores an expired pause.
    }
  }
}

/** Converts availability for the coordinator: codes, without the owner's sentences. */
export function reportedAvailability({ state, reasons, nextChangeAt }: CurrentAvailability): ReportedAvailability {
  const [first] = reasons;
  if (state === 'serving' || first === undefined) return { state };
  // The end of `owner_active` is only the earliest possible end, and therefore unknown.
  const until = first.until === null ? null : (nextChangeAt ?? first.until);
  return { state, reason: first.code, ...(until === null ? {} : { until: Math.ceil(until) }) };
}

function pausePath(dataDir: string): string {
  return join(dataDir, 'pause.json');
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
