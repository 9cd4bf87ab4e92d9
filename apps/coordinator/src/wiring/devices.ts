/**
 * `openDevices` connects device management (MDM) to the provider registry: supplies evidence about connected Macs, and offers enrolment.
 */
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fromHex, providerIdFromKeyHash } from '@inference/protocol';
import { errorReason, StartupError } from '../config/startup-error.js';
import { everyPeriod } from '../database/periodic-work.js';
import type { Database } from '../database/tables.js';
import { WebhookDigestRepository } from '../database/webhook-digest-repository.js';
import { type DeviceManagement, startDeviceManagement } from '../devices/device-management.js';
import { type ProfileSigner, profileSigner } from '../devices/profile-signer.js';
import type { DeviceManagementSettings } from '../devices/settings.js';
import { errorFacts } from '../log.js';
import type { ProviderEvent, ProviderRegistry } from '../providers/provider-registry.js';
import type { EnrolmentService } from '../providers/session/enrolment-requests.js';
import { APPLE_TRUST_ANCHOR, parseSimulatedAnchor, type TrustAnchor } from '../providers/verification/chain/trust-anchor.js';
import { PROFILE_PATH } from '../routes/devices/devices.js';
import { registerCertificateGauge } from '../telemetry/gauges.js';
import type { Metrics } from '../telemetry/metrics.js';
import type { StartContext } from './start-context.js';

export interface ManagedDevices {
  readonly management: DeviceManagement;
  readonly anchor: TrustAnchor;
  /** Handles a provider's request to enrol in device management. */
  readonly enrol: EnrolmentService;
  readonly onProviderEvent: (event: ProviderEvent) => void;
  /** From now on, passes a provider's evidence to this registry after each read, changed or not. */
  notifyProviders(providers: ProviderRegistry): void;
}

interface DevicesDeps {
  readonly database: Database;
  readonly metrics: Metrics;
  /** URL of the HTTP server. Empty until the server listens. */
  readonly address: () => string;
}

/** Throws StartupError if the simulated authority or the signing certificate cannot be used. */
export function openDevices(context: StartContext, { database, metrics, address }: DevicesDeps): ManagedDevices {
  const { config, options, now, log, changeHints } = context;
  const { deviceRules: rules, deviceIntervalMs: tickMs } = options;
  const anchor = deviceAnchor(config.simulatedDeviceAuthority);
  const management = startDeviceManagement({
    database,
    now,
    settings: config.deviceManagement,
    anchor,
    sharedDigests: config.cluster === null ? null : openDigests(context, database),
    downloadUrl: () => (config.deviceManagement?.publicUrl ?? address()) + PROFILE_PATH,
    onError: (error) => {
      metrics.deviceManagementFailed();
      log.error({ error: errorFacts(error) }, 'device management failed');
    },
    onEvidence: (key) => changeHints.publish('device', key),
    ...signerFor(config.deviceManagement, metrics, now),
    ...(rules === undefined ? {} : { rules }),
    ...(tickMs === undefined ? {} : { tickMs }),
  });
  const { evidence, managed } = management;
  if (managed !== null) {
    const { counts } = managed.receiver;
    metrics.gauge('device_reports', 'Reports of management servers since the start, by outcome.', ['outcome'], () =>
      Array.from(counts, ([outcome, count]) => [{ outcome }, count] as const),
    );
  }
  changeHints.on('device', (keys) => {
    for (const key of keys) void evidence.refresh(key);
  });
  return {
    management,
    anchor,
    enrol: enrolmentHandler(management),
    onProviderEvent: evidenceLoader(management),
    notifyProviders: (providers) =>
      evidence.onRead((key) => providers.setDeviceEvidence(providerIdFromKeyHash(fromHex(key)), evidence.forKey(key))),
  };
}

const PRUNE_DIGESTS_MS = 600_000;

/** Hashes of handled webhook events, by which the coordinators of a cluster recognize a repeated event. */
function openDigests({ onWriteError, disposal }: StartContext, database: Database): WebhookDigestRepository {
  const digests = new WebhookDigestRepository(database);
  disposal.defer(
    everyPeriod({
      database,
      name: 'prune webhook digests',
      periodMs: PRUNE_DIGESTS_MS,
      work: () => digests.prune(),
      onError: onWriteError,
    }),
  );
  return digests;
}

/** Returns a listener that loads a provider's device evidence when it joins, and drops the evidence when it leaves. */
function evidenceLoader({ evidence }: DeviceManagement): (event: ProviderEvent) => void {
  // Ids of sessions that have joined. A session that is refused in its last step leaves without having joined.
  const joinedSessions = new Set<string>();
  return (event) => {
    if (event.type === 'joined') {
      const { publicKeySha256 } = event.provider.registration.identity;
      joinedSessions.add(event.provider.sessionId);
      void evidence.watch(publicKeySha256);
      // The device may have changed while it was disconnected.
      evidence.markReconnected(publicKeySha256);
    }
    if (event.type === 'left' && joinedSessions.delete(event.sessionId) && event.provider !== null) {
      evidence.unwatch(event.provider.registration.identity.publicKeySha256);
    }
  };
}

/** Signer of enrolment profiles, if the operator configured a certificate. */
function signerFor(settings: DeviceManagementSettings | null, metrics: Metrics, now: () => number): { readonly sign?: ProfileSigner } {
  if (settings?.signing == null) return {};
  const { certificateFile, keyFile } = settings.signing;
  try {
    const certificates = readFileSync(certificateFile, 'utf8');
    const sign = profileSigner(certificates, readFileSync(keyFile, 'utf8'), now);
    registerCertificateGauge(metrics, { enrolment_profile: Date.parse(new X509Certificate(certificates).validTo) });
    return { sign };
  } catch (error) {
    throw new StartupError(`MDM_PROFILE_CERTIFICATE and MDM_PROFILE_KEY cannot be used: ${errorReason(error)}.`, { cause: error });
  }
}

function enrolmentHandler(devices: DeviceManagement): EnrolmentService {
  return async ({ providerId, publicKey, publicKeySha256, attestation }) => {
    if (devices.managed === null) return { kind: 'refused', reason: 'not_offered' };
    const applicant = { providerId, publicKey, publicKeySha256, serialNumber: attestation.serial_number };
    return { kind: 'offered', ...(await devices.managed.enrolments.offer(applicant)) };
  };
}

/** Trust anchor of device certificate chains: Apple's, or that of a simulated authority. */
function deviceAnchor(path: string | null): TrustAnchor {
  if (path === null) return APPLE_TRUST_ANCHOR;
  try {
    return parseSimulatedAnchor(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new StartupError(`SIMULATED_DEVICE_AUTHORITY names no certificate of a simulated authority: ${errorReason(error)}.`, {
      cause: error,
    });
  }
}
