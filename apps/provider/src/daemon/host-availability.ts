/**
 * Puts together what decides whether this machine serves: the owner's policy and pause, the clock, and what the machine tells of itself;
 * and keeps the system awake for as long as it does. Called once by the daemon, which closes what it gets.
 */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { writePrivateFile } from '../files/private-file.js';
import { availability, type Pause, troublesOf } from '../host/availability/availability.js';
import { Attendance, type AttendanceStatus } from '../host/availability/availability-controller.js';
import { HOLD_MS, type Holds, holdsAfter, NO_HOLDS } from '../host/availability/cooldowns.js';
import { pauseText, readPause } from '../host/availability/pause.js';
import type { AvailabilityPolicy } from '../host/availability/policy.js';
import type { HostCondition } from '../host/condition/condition.js';
import { OwnerWatch } from '../host/condition/owner-watch.js';
import { awakeCommand, StayAwake } from '../host/condition/stay-awake.js';
import { systemTimeZone } from '../host/condition/time-zone.js';
import { ConditionWatch, LOOK_EVERY_MS } from '../host/condition/watch-condition.js';

export interface AttendanceParts {
  readonly dataDir: string;
  readonly policy: AvailabilityPolicy;
  /** Folder of a simulated machine; null: this one. */
  readonly simulatedHost: string | null;
  readonly onCondition: (condition: HostCondition) => void;
  readonly onChange: (status: AttendanceStatus) => void;
  readonly onAwakeProblem: (reason: string) => void;
  readonly leave: (hurry: AbortSignal, stay: AbortSignal) => Promise<void>;
  readonly rest: () => Promise<void>;
  readonly resume: () => void;
}

/** How often the owner's presence is looked for, in milliseconds: nobody shall wait long for their machine. */
const LOOK_FOR_OWNER_MS = 5_000;
/** The clock may be set at any moment; all else that changes is told. */
const REVIEW_EVERY_MS = 10_000;
/** A simulated machine lives a hundred times as fast. */
const SIMULATED_HASTE = 100;

export class OpenAttendance {
  readonly #parts: AttendanceParts;
  readonly #root: string;
  readonly #haste: number;
  readonly #condition: ConditionWatch;
  readonly #owner: OwnerWatch;
  readonly #awake: StayAwake;
  readonly #attendance: Attendance;
  #policy: AvailabilityPolicy;
  #pause: Pause | null;
  #holds: Holds = NO_HOLDS;

  private constructor(parts: AttendanceParts, condition: ConditionWatch, owner: OwnerWatch, haste: number) {
    this.#parts = parts;
    this.#root = parts.simulatedHost ?? '/';
    this.#haste = haste;
    this.#condition = condition;
    this.#owner = owner;
    this.#policy = parts.policy;
    this.#pause = readPause(contents(pausePath(parts.dataDir)), Date.now());
    this.#awake = new StayAwake(awakeCommand(this.#root, process.pid), parts.onAwakeProblem);
    this.#attendance = new Attendance({
      decide: () => this.#decide(),
      leave: parts.leave,
      rest: parts.rest,
      resume: parts.resume,
      onChange: (status) => {
        this.#awake.want(status.state !== 'away');
        parts.onChange(status);
      },
      lookMs: REVIEW_EVERY_MS,
      now: Date.now,
    });
    this.#awake.want(this.#attendance.state !== 'away');
  }

  /** Resolves when the machine was looked at once, so that nothing is loaded into one that should not work now. */
  static async open(parts: AttendanceParts): Promise<OpenAttendance> {
    const { simulatedHost, policy } = parts;
    const haste = simulatedHost === null ? 1 : SIMULATED_HASTE;
    const source = { platform: simulatedHost === null ? process.platform : 'linux', root: simulatedHost ?? '/' } as const;
    let opened: OpenAttendance | null = null;
    const condition = new ConditionWatch(source, LOOK_EVERY_MS / haste, (told) => {
      parts.onCondition(told);
      opened?.review();
    });
    const owner = new OwnerWatch(source, Math.max(LOOK_EVERY_MS / SIMULATED_HASTE, LOOK_FOR_OWNER_MS / haste), () => opened?.review());
    await Promise.all([condition.first, owner.want(policy.onlyWhenIdleMinutes !== null)]);
    opened = new OpenAttendance(parts, condition, owner, haste);
    return opened;
  }

  get condition(): HostCondition {
    return this.#condition.condition;
  }

  get status(): AttendanceStatus {
    return this.#attendance.status;
  }

  /** Whether the system is kept from going to sleep. */
  get keepsAwake(): boolean {
    return this.#awake.active;
  }

  get pause(): Pause | null {
    return this.#pause;
  }

  review(): void {
    this.#attendance.review();
  }

  /** From now on this holds; null ends a pause. It is remembered over restarts; where it cannot be, it holds all the same. Throws what the file system says. */
  setPause(pause: Pause | null): void {
    this.#pause = pause;
    this.review();
    const path = pausePath(this.#parts.dataDir);
    if (pause === null) rmSync(path, { force: true });
    else writePrivateFile(path, pauseText(pause));
  }

  /** The owner wants something else from now on. */
  async setPolicy(policy: AvailabilityPolicy): Promise<void> {
    this.#policy = policy;
    await this.#owner.want(policy.onlyWhenIdleMinutes !== null);
    this.review();
  }

  /** Lets the system sleep again, and looks no more. */
  async close(): Promise<void> {
    this.#attendance.close();
    this.#awake.want(false);
    await Promise.all([this.#condition.close(), this.#owner.close()]);
  }

  #decide(): ReturnType<typeof availability> {
    const tick = performance.now();
    const now = Date.now();
    const { condition } = this.#condition;
    const holdMs = { heat: HOLD_MS.heat / this.#haste, memory: HOLD_MS.memory / this.#haste, power: HOLD_MS.power / this.#haste };
    this.#holds = holdsAfter(this.#holds, troublesOf(this.#policy, condition), tick, holdMs);
    if (this.#pause?.until != null && now >= this.#pause.until) this.#endPause();
    const left = (until: number): number => Math.max(0, until - tick);
    const { heat, memory, power } = this.#holds;
    return availability(
      this.#policy,
      {
        timeZone: systemTimeZone(this.#root),
        ownerIdleMs: this.#owner.idleMs,
        condition,
        holdsLeft: { heat: left(heat), memory: left(memory), power: left(power) },
        pause: this.#pause,
      },
      now,
    );
  }

  #endPause(): void {
    this.#pause = null;
    try {
      rmSync(pausePath(this.#parts.dataDir), { force: true });
    } catch {
      // One whose time is over is none when it is read.
    }
  }
}

function pausePath(dataDir: string): string {
  return join(dataDir, 'pause.json');
}

function contents(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
