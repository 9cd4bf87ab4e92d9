/** `Notifier` passes the daemon's events and the account's earnings to `NotificationPolicy`, and shows the returned notifications. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { lazyValidator } from '@inference/protocol';
import type { Logger } from 'pino';
import Type from 'typebox';
import { writePrivateFile } from '../files/private-file.js';
import { systemProblem } from '../files/system-error.js';
import { showMacNotification } from './mac-notification.js';
import {
  NOTIFICATION_KINDS,
  type NotificationEvent,
  NotificationPolicy,
  type ShownTimes,
  type TotalEarnings,
} from './notification-policy.js';

interface NotifierOptions {
  readonly dataDir: string;
  /** Whether the owner wants notifications. */
  readonly isOn: () => boolean;
  /** Shows a notification. Resolves to null, or to the reason for not showing it. Never rejects. */
  readonly show: (body: string) => Promise<string | null>;
  /** Reads the account's earnings. Resolves to null if not linked, or without an answer. Never rejects. */
  readonly earnings: () => Promise<TotalEarnings | null>;
  readonly log: Logger;
}

const TICK_MS = 30_000;
export const EARNINGS_INTERVAL_MS = 15 * 60_000;

/** Opens a notifier on macOS; null on other systems. */
export function openNotifier(options: Omit<NotifierOptions, 'show'>): Notifier | null {
  return process.platform === 'darwin' ? new Notifier({ ...options, show: showMacNotification }) : null;
}

export class Notifier {
  readonly #options: NotifierOptions;
  readonly #policy: NotificationPolicy;
  readonly #timers: readonly NodeJS.Timeout[];

  constructor(options: NotifierOptions) {
    this.#options = options;
    this.#policy = new NotificationPolicy(Date.now(), readShownTimes(options.dataDir));
    this.#timers = [
      setInterval(() => this.on({ type: 'tick' }), TICK_MS).unref(),
      setInterval(() => void this.#readEarnings(), EARNINGS_INTERVAL_MS).unref(),
    ];
  }

  on(event: NotificationEvent): void {
    const { isOn, log, show } = this.#options;
    const notifications = this.#policy.on(event, Date.now(), isOn());
    // Stored first: a daemon that crashes would otherwise repeat them at each start.
    if (notifications.length > 0 && !this.#store()) return;
    for (const { kind, body } of notifications) {
      void show(body).then((problem) => {
        if (problem === null) log.info({ event: 'notification', kind }, 'the owner was notified');
        else log.warn({ event: 'notification_failed', kind, reason: problem }, 'a notification could not be shown');
      });
    }
    // Reads now, so that the policy can compare later totals.
    if (event.type === 'linked') void this.#readEarnings();
  }

  close(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }

  /** Returns false if that fails. */
  #store(): boolean {
    const { dataDir, log } = this.#options;
    try {
      writeShownTimes(dataDir, this.#policy.shownAt);
      return true;
    } catch (error) {
      log.warn({ event: 'notification_failed', reason: systemProblem(error) ?? 'unknown' }, 'a notification could not be shown');
      return false;
    }
  }

  async #readEarnings(): Promise<void> {
    if (!this.#options.isOn()) return;
    const earnings = await this.#options.earnings();
    if (earnings !== null) this.on({ type: 'earnings', earnings });
  }
}

const validator = lazyValidator(Type.Object(Object.fromEntries(NOTIFICATION_KINDS.map((kind) => [kind, Type.Optional(Type.Integer())]))));

const pathIn = (dataDir: string): string => join(dataDir, 'notifications.json');

/** When each kind of notification was last shown. Returns `{}` if the file is missing or damaged. */
function readShownTimes(dataDir: string): ShownTimes {
  try {
    const value: unknown = JSON.parse(readFileSync(pathIn(dataDir), 'utf8'));
    return validator().Check(value) ? value : {};
  } catch {
    return {};
  }
}

function writeShownTimes(dataDir: string, times: ShownTimes): void {
  writePrivateFile(pathIn(dataDir), `${JSON.stringify(times)}\n`);
}
