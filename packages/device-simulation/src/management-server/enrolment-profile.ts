/** Reads from an enrolment profile where a Mac checks in, and where it gets its identity certificate. */
import { type PlistValue, parse } from 'plist';

export interface EnrolmentProfile {
  /** Check-in address of the Mac. */
  readonly checkInUrl: string;
  /** Query parameters of `checkInUrl`, which the management server repeats in each event about the Mac. */
  readonly parameters: Readonly<Record<string, string>>;
  /** Null where the profile has no ACME payload. */
  readonly acme: { readonly directoryUrl: string; readonly serialNumber: string } | null;
}

/** Parses an unsigned profile (XML). Throws TypeError for a profile without a device management payload. */
export function readEnrolmentProfile(xml: string): EnrolmentProfile {
  const root = parse(xml);
  const payloads = isDict(root) && Array.isArray(root.PayloadContent) ? root.PayloadContent.filter(isDict) : [];
  const management = payloads.find((payload) => payload.PayloadType === 'com.apple.mdm');
  const url = management?.CheckInURL ?? management?.ServerURL;
  if (typeof url !== 'string') throw new TypeError('the profile has no device management in it');
  const acme = payloads.find((payload) => payload.PayloadType === 'com.apple.security.acme');
  return {
    checkInUrl: url,
    parameters: Object.fromEntries(new URL(url).searchParams),
    acme: acme === undefined ? null : { directoryUrl: String(acme.DirectoryURL), serialNumber: String(acme.ClientIdentifier) },
  };
}

function isDict(value: PlistValue | undefined): value is { [key: string]: PlistValue } {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && Object.getPrototypeOf(value) === Object.prototype;
}
