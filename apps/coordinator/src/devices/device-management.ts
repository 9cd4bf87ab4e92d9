/**
 * `startDeviceManagement` creates the parts of device management: evidence cache, enrolment service, webhook receiver and command worker.
 */

import type { Database } from '../database/tables.js';
import type { WebhookDigestRepository } from '../database/webhook-digest-repository.js';
import type { TrustAnchor } from '../providers/verification/chain/trust-anchor.js';
import { SCHEDULE_RULES, type ScheduleRules } from './command-policy.js';
import { CommandWorker } from './command-worker.js';
import { DeviceEnrolmentService } from './device-enrolment-service.js';
import { DeviceEvidenceCache } from './device-evidence-cache.js';
import { ManagementClient } from './management-client.js';
import type { DeviceManagementSettings } from './settings.js';
import { WebhookReceiver } from './webhook-receiver.js';

interface DeviceManagementOptions {
  readonly database: Database;
  readonly anchor: TrustAnchor;
  /** Null: no devices are managed. Stored evidence is still read. */
  readonly settings: DeviceManagementSettings | null;
  readonly downloadUrl: () => string;
  /** Digests of accepted webhook events, shared by the coordinators of a cluster; null outside a cluster. */
  readonly sharedDigests: WebhookDigestRepository | null;
  readonly now: () => number;
  readonly onError: (error: unknown) => void;
  /** Called with each key whose stored evidence has changed, to notify other coordinators. */
  readonly onEvidence?: (seKeySha256: string) => void;
  readonly sign?: (profile: Uint8Array) => Uint8Array;
  /** Only for tests. */
  readonly rules?: Partial<ScheduleRules>;
  readonly tickMs?: number;
}

export interface DeviceManagement {
  readonly evidence: DeviceEvidenceCache;
  readonly managed: {
    readonly settings: DeviceManagementSettings;
    readonly receiver: WebhookReceiver;
    readonly enrolments: DeviceEnrolmentService;
    readonly commands: CommandWorker;
  } | null;
  close(): Promise<void>;
}

/** Interval at which the command worker checks all devices. */
const TICK_MS = 2000;

export function startDeviceManagement(options: DeviceManagementOptions): DeviceManagement {
  const { database, anchor, settings, sharedDigests, now, onError, onEvidence = () => {} } = options;
  const evidence = new DeviceEvidenceCache({ database, anchor, now, onError });
  if (settings === null) return { evidence, managed: null, close: async () => {} };
  const client = new ManagementClient({ url: settings.url, apiKey: settings.apiKey });
  const { securityIntervalMs } = settings;
  const minPauseMs = Math.min(SCHEDULE_RULES.minPauseMs, securityIntervalMs);
  const rules = { ...SCHEDULE_RULES, securityIntervalMs, minPauseMs, ...options.rules };
  const tickMs = options.tickMs ?? TICK_MS;
  const commands = new CommandWorker({ database, evidence, client, rules, now, onError, tickMs, hasPeers: sharedDigests !== null });
  const receiver = new WebhookReceiver({
    database,
    anchor,
    now,
    onChange: (key) => {
      void evidence.refresh(key);
      onEvidence(key);
    },
    sharedDigests,
  });
  const { profile } = settings;
  const sign = options.sign === undefined ? {} : { sign: options.sign };
  const enrolments = new DeviceEnrolmentService({ database, profile, downloadUrl: options.downloadUrl, now, ...sign });
  return { evidence, managed: { settings, receiver, enrolments, commands }, close: () => commands.close() };
}
