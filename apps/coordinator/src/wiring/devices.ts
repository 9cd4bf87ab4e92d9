/**
 * Wires device management to the fleet and to HTTP: evidence is at hand for as long as its provider is registered, changes of it
 * reach the session at once, and providers may ask for an enrolment profile. Called once by app.ts.
 */
import { readFileSync } from 'node:fs';
import { fromHex, providerIdFromKeyHash } from '@inference/protocol';
import type { FastifyInstance, onRequestHookHandler } from 'fastify';
import type { Config } from '../config/config.js';
import { errorReason, StartupError } from '../config/startup-error.js';
import type { Database } from '../database/tables.js';
import type { ScheduleRules } from '../devices/command-policy.js';
import { type DeviceManagement, startDeviceManagement } from '../devices/device-management.js';
import { type ProfileSigner, profileSigner } from '../devices/profile-signer.js';
import type { DeviceManagementSettings } from '../devices/settings.js';
import { errorFacts, type Log } from '../log.js';
import type { ProviderEvent, ProviderRegistry } from '../providers/provider-registry.js';
import type { EnrolmentService } from '../providers/session/enrolment-requests.js';
import type { ProviderSession } from '../providers/session/provider-session.js';
import { APPLE_TRUST_ANCHOR, parseSimulatedAnchor, type TrustAnchor } from '../providers/verification/chain/trust-anchor.js';
import { addDeviceOperations, addDevices, PROFILE_PATH } from '../routes/devices/devices.js';
import type { RateLimits } from '../routes/plugins/rate-limits.js';

export interface DevicesOptions {
  readonly config: Config;
  readonly database: Database;
  readonly now: () => number;
  readonly log: Log;
  /** Where this coordinator listens, once it does. */
  readonly address: () => string;
  /** Tests shorten these. */
  readonly rules?: Partial<ScheduleRules>;
  readonly tickMs?: number;
}

export interface ManagedDevices {
  readonly management: DeviceManagement;
  /** The root that managed-device chains must end at. */
  readonly anchor: TrustAnchor;
  /** Answers providers that ask for a profile. */
  readonly enrol: EnrolmentService;
  /** Takes in the fleet's events. */
  readonly onProviderEvent: (event: ProviderEvent) => void;
  /** From now on changes of evidence reach this fleet. */
  notifyProviders(fleet: ProviderRegistry): void;
  addRoutes(server: FastifyInstance, adminGuard: onRequestHookHandler, limits: RateLimits): void;
}

/** Throws StartupError for a simulated authority or a signing certificate that cannot be used. */
export function openDevices(parts: DevicesOptions): ManagedDevices {
  const { config, database, now, log, address, rules, tickMs } = parts;
  const anchor = deviceAnchor(config.simulatedDeviceAuthority);
  const management = startDeviceManagement({
    database,
    now,
    settings: config.deviceManagement,
    anchor,
    downloadUrl: () => (config.deviceManagement?.publicUrl ?? address()) + PROFILE_PATH,
    onError: (error) => log.error({ error: errorFacts(error) }, 'device management failed'),
    ...signerFor(config.deviceManagement, now),
    ...(rules === undefined ? {} : { rules }),
    ...(tickMs === undefined ? {} : { tickMs }),
  });
  const { book, managed } = management;
  return {
    management,
    anchor,
    enrol: enrolmentHandler(management),
    onProviderEvent: providerFollower(management),
    notifyProviders: (fleet) => book.onChange((key) => fleet.setDeviceEvidence(providerIdFromKeyHash(fromHex(key)), book.forKey(key))),
    addRoutes: (server, adminGuard, limits) => {
      if (managed !== null) addDevices(server, managed, limits, now);
      addDeviceOperations(server, adminGuard, management);
    },
  };
}

/** Keeps evidence at hand for as long as its provider is registered. Gives the listener for the fleet's events. */
function providerFollower({ book }: DeviceManagement): (event: ProviderEvent) => void {
  // A session that was refused at the last step leaves without having joined.
  const followed = new Set<ProviderSession>();
  return (event) => {
    if (event.type === 'joined') {
      const { publicKeySha256 } = event.session.registration.identity;
      followed.add(event.session);
      void book.watch(publicKeySha256);
      // Who knows what happened to the machine while it was away.
      book.doubt(publicKeySha256);
    }
    if (event.type === 'left' && followed.delete(event.session) && event.session.registration !== null) {
      book.unwatch(event.session.registration.identity.publicKeySha256);
    }
  };
}

/** The signer of enrolment profiles, where the operator has given one. */
function signerFor(settings: DeviceManagementSettings | null, now: () => number): { readonly sign?: ProfileSigner } {
  if (settings?.signing == null) return {};
  const { certificateFile, keyFile } = settings.signing;
  try {
    return { sign: profileSigner(readFileSync(certificateFile, 'utf8'), readFileSync(keyFile, 'utf8'), now) };
  } catch (error) {
    throw new StartupError(`MDM_PROFILE_CERTIFICATE and MDM_PROFILE_KEY cannot be used: ${errorReason(error)}.`, { cause: error });
  }
}

function enrolmentHandler(devices: DeviceManagement): EnrolmentService {
  return async ({ providerId, publicKey, publicKeySha256, attestation }) => {
    if (devices.managed === null) return { kind: 'refused', reason: 'not_offered' };
    const applicant = { providerId, publicKey, publicKeySha256, serialNumber: attestation.serial_number };
    return { kind: 'offered', ...(await devices.managed.desk.offer(applicant)) };
  };
}

/** The root that managed-device chains must end at: the maker's, or the one of a simulation. */
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
