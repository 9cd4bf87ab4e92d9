/** Reads the settings of device management from the environment. Without MDM_URL no devices are managed. */
import { checked, type Environment, integer, text } from '../config/environment.js';
import { StartupError } from '../config/startup-error.js';
import type { DeviceIdentitySource, ProfileSettings } from './enrolment-profile.js';

export interface DeviceManagementSettings {
  readonly url: string;
  readonly apiKey: string;
  readonly webhookSecret: string;
  /** HMAC secret of the ACME server's webhook, which reports answers to `device-attest-01`. Default: `webhookSecret`. */
  readonly acmeHookSecret: string;
  readonly profile: ProfileSettings;
  /** PEM files for signing profiles; null: profiles are not signed. */
  readonly signing: { readonly certificateFile: string; readonly keyFile: string } | null;
  /** URL of this coordinator for devices; null: its listen address. */
  readonly publicUrl: string | null;
  /** Interval between queries of a device's protections, such as SIP and secure boot. */
  readonly securityIntervalMs: number;
}

/** Reads the environment. Throws {@link StartupError} for the first invalid value. Null if no devices are managed. */
export function readDeviceManagement(env: Environment): DeviceManagementSettings | null {
  const url = address(env, 'MDM_URL');
  if (url === null) return null;
  const webhookSecret = hmacSecret(env, 'MDM_WEBHOOK_SECRET') ?? throwMissing('MDM_WEBHOOK_SECRET');
  return {
    url,
    apiKey: text(env, 'MDM_API_KEY') ?? throwMissing('MDM_API_KEY'),
    webhookSecret,
    acmeHookSecret: hmacSecret(env, 'MDM_ACME_HOOK_SECRET') ?? webhookSecret,
    profile: readProfile(env, url),
    signing: readSigning(env),
    publicUrl: address(env, 'PUBLIC_URL'),
    securityIntervalMs: 1000 * integer(env, 'MDM_SECURITY_INTERVAL_SECONDS', 3600, 1, 86_400),
  };
}

function readProfile(env: Environment, url: string): ProfileSettings {
  const serverUrl = address(env, 'MDM_SERVER_URL') ?? `${url}/mdm`;
  const topic = text(env, 'MDM_TOPIC') ?? throwMissing('MDM_TOPIC');
  if (!/^com\.apple\.mgmt\.[A-Za-z0-9.-]+$/.test(topic))
    throw new StartupError('MDM_TOPIC must be the topic of a push certificate, com.apple.mgmt.….');
  return {
    serverUrl,
    checkInUrl: address(env, 'MDM_CHECKIN_URL') ?? serverUrl,
    topic,
    identity: readIdentity(env),
    organization: text(env, 'MDM_ORGANIZATION') ?? 'Inference network',
  };
}

function readIdentity(env: Environment): DeviceIdentitySource {
  // May contain `{enrolment}`, which the profile replaces by the enrolment token.
  const acme = address(env, 'MDM_ACME_DIRECTORY_URL');
  const scep = address(env, 'MDM_SCEP_URL');
  if ((acme === null) === (scep === null)) {
    throw new StartupError(
      'Exactly one of MDM_ACME_DIRECTORY_URL and MDM_SCEP_URL must be set: devices need an identity from one of them.',
    );
  }
  if (acme !== null) return { kind: 'acme', directoryUrl: acme };
  return { kind: 'scep', url: scep ?? '', challenge: text(env, 'MDM_SCEP_CHALLENGE') };
}

function readSigning(env: Environment): DeviceManagementSettings['signing'] {
  const certificateFile = text(env, 'MDM_PROFILE_CERTIFICATE');
  const keyFile = text(env, 'MDM_PROFILE_KEY');
  if (certificateFile === null && keyFile === null) return null;
  return {
    certificateFile: certificateFile ?? throwMissing('MDM_PROFILE_CERTIFICATE', 'MDM_PROFILE_KEY'),
    keyFile: keyFile ?? throwMissing('MDM_PROFILE_KEY', 'MDM_PROFILE_CERTIFICATE'),
  };
}

/** Reads an http or https URL, and removes trailing slashes. */
function address(env: Environment, name: string): string | null {
  const value = text(env, name);
  if (value === null) return null;
  const url = URL.canParse(value) ? new URL(value) : null;
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:') || url.username !== '' || url.password !== '') {
    throw new StartupError(`${name} must be an http or https address without a user in it.`);
  }
  return value.replace(/\/+$/, '');
}

/** Requires 16 characters, against guessing. */
function hmacSecret(env: Environment, name: string): string | null {
  return checked(env, name, (value) => value.length >= 16, 'have at least 16 characters');
}

function throwMissing(name: string, cause = 'MDM_URL'): never {
  throw new StartupError(`${cause} is set, so ${name} must be set, too.`);
}
