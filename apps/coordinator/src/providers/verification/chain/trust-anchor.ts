/**
 * Trust anchors of device certificate chains: name and public key (RFC 5280 section 6.1.1 d). `wiring/devices.ts` chooses one.
 *
 * Only Apple's anchor proves hardware. An anchor from a file is always simulated.
 */
import { fromBase64, fromHex } from '@inference/protocol';
import { nameAttributes, parseCertificate } from './certificate.js';
import { pointOf } from './p384.js';

export interface TrustAnchor {
  readonly commonName: string;
  /** Subject of the root certificate, a Name in DER. */
  readonly name: Uint8Array;
  /** Uncompressed P-384 point, 97 bytes. */
  readonly publicKey: Uint8Array;
  readonly isSimulated: boolean;
}

/** Apple Enterprise Attestation Root CA, valid from 2022-02-16 to 2047-02-20. */
export const APPLE_TRUST_ANCHOR: TrustAnchor = {
  commonName: 'Apple Enterprise Attestation Root CA',
  // CN=Apple Enterprise Attestation Root CA, O=Apple Inc. (UTF8String both), C=US (PrintableString)
  name: fromHex(
    '3051312d302b06035504030c244170706c6520456e7465727072697365204174746573746174696f6e20526f6f74204341' +
      '31133011060355040a0c0a4170706c6520496e632e310b3009060355040613025553',
  ),
  publicKey: fromHex(
    '04fa26282af8fb3d4380a84fcb7cabe52739eda9a13f6745a51f1a10536e0bea4865cf8d591b62521660efb5ccf9364b3f' +
      '61439a33ce62eb3e64c18045917078c0dbfcbbec6122729b3dc27dad8fe1bcf65dc834d0ca11377148f3c86693e3f159',
  ),
  isSimulated: false,
};

/** Reads the root certificate (PEM) of a simulated authority. Throws unless its common name contains `simulat`. */
export function parseSimulatedAnchor(pem: string): TrustAnchor {
  const [, base64 = ''] = /^-----BEGIN CERTIFICATE-----\s+([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----\s*$/.exec(pem) ?? [];
  const certificate = parseCertificate(fromBase64(base64.replace(/\s/g, '')));
  const publicKey = pointOf(certificate.publicKeyInfo);
  if (publicKey === null) throw new Error('the key of the certificate is not on P-384');
  const commonName = nameAttributes(certificate.subject, '2.5.4.3')[0] ?? null;
  if (commonName === null || !/simulat/i.test(commonName))
    throw new Error('the common name of the certificate does not say that it is simulated');
  return { commonName, name: Uint8Array.from(certificate.subject), publicKey, isSimulated: true };
}
