/** Trust anchors of device chains (RFC 5280 section 6.1.1). Apple's anchor is pinned in code, so that no download can replace it. */
import { fromHex } from '@inference/protocol';

export interface TrustAnchor {
  /** DER of the name, byte for byte equal to issuer names in certificates. */
  readonly name: Uint8Array;
  /** Uncompressed P-384 point, 97 bytes. */
  readonly publicKey: Uint8Array;
}

/** Apple's enterprise attestation root (CN=Apple Enterprise Attestation Root CA, O=Apple Inc., C=US), valid from 2022-02-16 to 2047-02-20. */
export const APPLE_ENTERPRISE_ATTESTATION_ROOT: TrustAnchor = {
  name: fromHex(
    '3051312d302b06035504030c244170706c6520456e7465727072697365204174746573746174696f6e20526f6f742043413113301106' +
      '0355040a0c0a4170706c6520496e632e310b3009060355040613025553',
  ),
  publicKey: fromHex(
    '04fa26282af8fb3d4380a84fcb7cabe52739eda9a13f6745a51f1a10536e0bea4865cf8d591b62521660efb5ccf9364b3f61439a33ce62eb3e64c18045917078c0dbfcbbec6122729b3dc27dad8fe1bcf65dc834d0ca11377148f3c86693e3f159',
  ),
};
