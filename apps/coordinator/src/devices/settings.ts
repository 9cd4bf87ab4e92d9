/**
 * Settings of device management. Without MDM_URL there is none; with MDM_URL all required settings must be present, because a
 * partial setup would leave providers waiting forever.
 */
import { StartupError } from '../config/startup-error.js';
import type { DeviceIdentitySource, ProfileSettings } from './enrolment-profile.js';

export interface DeviceManagementSettings {
  /** Management server: API address and key. */
  readonly url: string;
  readonly apiKey: string;
  /** HMAC secret of the webhook. */
  readonly webhookSecret: string;
  /** HMAC secret of the ACME server's reports. */
  readonly acmeHookSecret: string;
  readonly profile: ProfileSettings;
  /** PEM files that sign profiles; null: unsigned profiles. */
  readonly signing: { readonly certificateFile: string; readonly keyFile: string } | null;
  /** Address of this coordinator for devices; null: its listen address. */
  readonly publicUrl: string | null;
  /** Pause between two questions for a device's protections, in milliseconds. */
  readonly securityIntervalMs: number;
}

type Env = Readonly<Record<string, string | undefined>>;

/** Reads the environment. Throws {@link StartupError} naming the first bad value. Null when no devices are managed. */
export function readDeviceManagement(env: Env): DeviceManagementSettings | null {
  const url = address(env, 'MDM_URL');
  if (url === null) return null;
  const webhookSecret = secret(env, 'MDM_WEBHOOK_SECRET') ?? missing('MDM_WEBHOOK_SECRET');
  return {
    url,
    apiKey: value(env, 'MDM_API_KEY') ?? missing('MDM_API_KEY'),
    webhookSecret,
    acmeHookSecret: secret(env, 'MDM_ACME_HOOK_SECRET') ?? webhookSecret,
    profile: readProfile(env, url),
    signing: readSigning(env),
    publicUrl: address(env, 'PUBLIC_URL'),
    securityIntervalMs: 1000 * seconds(env, 'MDM_SECURITY_INTERVAL_SECONDS', 3600),
  };
}

function readProfile(env: Env, url: string): ProfileSettings {
  const serverUrl = address(env, 'MDM_SERVER_URL') ?? `${url}/mdm`;
  const topic = value(env, 'MDM_TOPIC') ?? missing('MDM_TOPIC');
  if (!/^com\.apple\.mgmt\.[A-Za-z0-9.-]+$/.test(topic))
    throw new StartupError('MDM_TOPIC must be the topic of a push certificate, com.apple.mgmt.….');
  return {
    serverUrl,
    checkInUrl: address(env, 'MDM_CHECKIN_URL') ?? serverUrl,
    topic,
    identity: readIdentity(env),
    organization: value(env, 'MDM_ORGANIZATION') ?? 'Inference network',
  };
}

function readIdentity(env: Env): DeviceIdentitySource {
  const acme = address(env, 'MDM_ACME_DIRECTORY_URL');
  const scep = address(env, 'MDM_SCEP_URL');
  if ((acme === null) === (scep === null)) {
    throw new StartupError('One of MDM_ACME_DIRECTORY_URL and MDM_SCEP_URL must be set: devices need an identity from one of them.');
  }
  if (acme !== null) return { kind: 'acme', directoryUrl: acme };
  return { kind: 'scep', url: scep ?? '', challenge: value(env, 'MDM_SCEP_CHALLENGE') };
}

function readSigning(env: Env): DeviceManagementSettings['signing'] {
  const certificateFile = value(env, 'MDM_PROFILE_CERTIFICATE');
  const keyFile = value(env, 'MDM_PROFILE_KEY');
  if (certificateFile === null && keyFile === null) return null;
  return {
    certificateFile: certificateFile ?? missing('MDM_PROFILE_CERTIFICATE'),
    keyFile: keyFile ?? missing('MDM_PROFILE_KEY'),
  };
}

function value(env: Env, name: string): string | null {
  const text = env[name];
  return text === undefined || text === '' ? null : text;
}

/** An http or https address without a trailing slash. May contain `{enrolment}`. */
function address(env: Env, name: string): string | null {
  const text = value(env, name);
  if (text === null) return null;
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:') || url.username !== '' || url.password !== '') {
    throw new StartupError(`${name} must be an http or https address without a user in it.`);
  }
  return text.replace(/\/+$/, '');
}

/** A key of HMAC-SHA256 should not be easier to guess than 128 bits; a short text certainly is. */
function secret(env: Env, name: string): string | null {
  const text = value(env, name);
  if (text !== null && text.length < 16) throw new StartupError(`${name} must have at least 16 characters.`);
  return text;
}

function seconds(env: Env, name: string, fallback: number): number {
  const text = value(env, name);
  if (text === null) return fallback;
  const number = Number(text);
  if (!/^\d{1,6}$/.test(text) || number < 1 || number > 86_400) throw new StartupError(`${name} must be a whole number from 1 to 86400.`);
  return number;
}

function missing(name: string): never {
  throw new StartupError(`MDM_URL is set, so ${name} must be set, too.`);
}
