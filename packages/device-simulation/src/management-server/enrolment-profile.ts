/** `readEnrolmentProfile` parses an enrolment profile: check-in URL of the management server, and ACME directory. */
import { type PlistValue, parse } from 'plist';

export interface EnrolmentOrders {
  /** Check-in address of the Mac. */
  readonly checkInUrl: string;
  /** Query parameters of the check-in address, which the server forwards with every message of the Mac. */
  readonly parameters: Readonly<Record<string, string>>;
  /** ACME directory for the Mac's identity, or null where the profile orders another kind of identity. */
  readonly acme: { readonly directoryUrl: string; readonly clientIdentifier: string } | null;
}

/** Throws TypeError for a profile without device management. Callers unwrap signed profiles first. */
export function readEnrolmentProfile(profile: string): EnrolmentOrders {
  const root = parse(profile);
  const payloads = isDict(root) && Array.isArray(root.PayloadContent) ? root.PayloadContent.filter(isDict) : [];
  const management = payloads.find((payload) => payload.PayloadType === 'com.apple.mdm');
  const url = management?.CheckInURL ?? management?.ServerURL;
  if (typeof url !== 'string') throw new TypeError('the profile has no device management in it');
  const acme = payloads.find((payload) => payload.PayloadType === 'com.apple.security.acme');
  return {
    checkInUrl: url,
    parameters: Object.fromEntries(new URL(url).searchParams),
    acme: acme === undefined ? null : { directoryUrl: String(acme.DirectoryURL), clientIdentifier: String(acme.ClientIdentifier) },
  };
}

function isDict(value: PlistValue | undefined): value is { [key: string]: PlistValue } {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && Object.getPrototypeOf(value) === Object.prototype;
}
