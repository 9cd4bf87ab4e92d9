/**
 * Mutations of extensions (unknown, duplicate, absent, malformed) and of the leaf's common name.
 *
 * Each has the code with which a verifier must reject the chain; null: the verifier must accept the chain.
 */
import { concatBytes, utf8 } from '@inference/protocol';
import { DEVICE_ATTESTATION_PURPOSE } from '../authority.js';
import { EXTENSION_OID, type Extension, encodeName, extendedKeyUsage, nameAttribute } from '../certificate.js';
import { boolean, objectIdentifier, octetString, printableString, sequence, TAG, tlv, utf8String } from '../der.js';
import { DEVICE_OIDS } from '../device-extensions.js';
import {
  type ChainMutation,
  type Change,
  chainMutation,
  changedIssuer,
  changedLeaf,
  dropExtension,
  eachExtension,
  mutation,
  replace,
  SAMPLE_DEVICE,
  setExtension,
} from '../mutation-bench.js';

const EXTENDED_KEY_USAGE = EXTENSION_OID.extendedKeyUsage;
const COMMON_NAME = '2.5.4.3';
const IA5_STRING = 0x16;

/** The leaf's common name, 64 hexadecimal digits, as bytes. */
function commonNameOf(subject: Uint8Array): Uint8Array {
  return utf8(/[0-9a-f]{64}/.exec(String.fromCharCode(...subject))?.[0] ?? '');
}

const duplicated = (oid: string): Change => eachExtension((extension) => (extension.oid === oid ? [extension, extension] : [extension]));
const add =
  (extension: Extension): Change =>
  (template) => ({ ...template, extensions: [...template.extensions, extension] });

/**
 * Apple's extensions as pairs: start of the rejection code, and object identifier.
 *
 * `sepos` is the operating system of the Secure Enclave, `llb` the low-level boot loader, `kexts` whether third-party kernel extensions are
 * allowed, and `freshness` the nonce that the verifier expects.
 */
const FIELDS = [
  ['serial', DEVICE_OIDS.serial],
  ['udid', DEVICE_OIDS.udid],
  ['board', DEVICE_OIDS.board],
  ['os_version', DEVICE_OIDS.osVersion],
  ['sepos_version', DEVICE_OIDS.sepOsVersion],
  ['llb_version', DEVICE_OIDS.llbVersion],
  ['freshness', DEVICE_OIDS.freshness],
  ['sip', DEVICE_OIDS.sip],
  ['secure_boot', DEVICE_OIDS.secureBoot],
  ['kexts', DEVICE_OIDS.kexts],
] as const;

function malformed(name: string, field: (typeof FIELDS)[number][0], value: Uint8Array): ChainMutation {
  const oid = FIELDS.find(([known]) => known === field)?.[1] ?? '';
  return changedLeaf(name, `${field}_malformed`, setExtension(oid, value));
}

export const extensionMutations: readonly ChainMutation[] = [
  changedLeaf(
    'an unknown critical extension in the leaf',
    'unknown_critical_extension',
    add({ oid: '1.2.3.4', critical: true, value: Uint8Array.of(5, 0) }),
  ),
  changedIssuer(
    'an unknown critical extension in the issuer',
    'unknown_critical_extension',
    // Name constraints, which verifiers do not support.
    add({ oid: '2.5.29.30', critical: true, value: Uint8Array.of(0x30, 0) }),
  ),
  changedLeaf('an unknown extension that is not critical', null, add({ oid: '1.2.3.4', critical: false, value: Uint8Array.of(5, 0) })),
  changedLeaf(
    'an extended key usage for web servers',
    'extended_key_usage',
    setExtension(EXTENDED_KEY_USAGE, extendedKeyUsage('1.3.6.1.5.5.7.3.1')),
  ),
  changedLeaf(
    'an extended key usage for anything',
    'extended_key_usage',
    setExtension(EXTENDED_KEY_USAGE, extendedKeyUsage('2.5.29.37.0')),
  ),
  changedLeaf('an extended key usage of nothing', 'extended_key_usage', setExtension(EXTENDED_KEY_USAGE, extendedKeyUsage())),
  changedLeaf(
    'an extended key usage with another beside the needed one',
    null,
    setExtension(EXTENDED_KEY_USAGE, extendedKeyUsage('1.3.6.1.5.5.7.3.2', DEVICE_ATTESTATION_PURPOSE)),
  ),
  changedLeaf(
    'bytes after the extended key usage',
    'extended_key_usage',
    setExtension(EXTENDED_KEY_USAGE, concatBytes(extendedKeyUsage(DEVICE_ATTESTATION_PURPOSE), tlv(TAG.null))),
  ),
  changedLeaf(
    'an extended key usage that is no object identifier beside the needed one',
    'extended_key_usage',
    setExtension(EXTENDED_KEY_USAGE, sequence(objectIdentifier(DEVICE_ATTESTATION_PURPOSE), tlv(TAG.null))),
  ),
  changedIssuer(
    'a malformed extended key usage in the issuer, which verifiers ignore',
    null,
    add({ oid: EXTENDED_KEY_USAGE, critical: false, value: tlv(TAG.null) }),
  ),
  changedLeaf(
    'a malformed alternative name, which verifiers ignore',
    null,
    add({ oid: '2.5.29.17', critical: false, value: Uint8Array.of(0xff, 0xff) }),
  ),
  changedLeaf('no extended key usage, as in leaves issued through ACME', null, dropExtension(EXTENDED_KEY_USAGE)),
  changedLeaf(
    'a common name that is the hash of another key',
    'common_name',
    replace({ subject: encodeName({ commonName: 'ab'.repeat(32) }) }),
  ),
  changedLeaf('a common name as IA5String', 'common_name', (leaf) => ({
    ...leaf,
    subject: sequence(nameAttribute(COMMON_NAME, tlv(IA5_STRING, commonNameOf(leaf.subject)))),
  })),
  changedLeaf('a second common name as IA5String', 'common_name', (leaf) => ({
    ...leaf,
    subject: sequence(
      nameAttribute(COMMON_NAME, tlv(TAG.utf8String, commonNameOf(leaf.subject))),
      nameAttribute(COMMON_NAME, tlv(IA5_STRING, utf8('another'))),
    ),
  })),
  changedLeaf('no common name', 'common_name', replace({ subject: Uint8Array.of(0x30, 0) })),
  ...[...FIELDS, ['constraints', EXTENSION_OID.basicConstraints], ['purpose', EXTENDED_KEY_USAGE]].map(
    ([field = '', oid = '']): ChainMutation => changedLeaf(`${field} twice`, 'duplicate_extension', duplicated(oid)),
  ),
  chainMutation('a second freshness code with another value', 'duplicate_extension', (b) =>
    b.chain(add({ oid: DEVICE_OIDS.freshness, critical: false, value: b.random(32) })),
  ),
  mutation('an unknown extension twice', 'duplicate_extension', (b) => {
    const extra = { oid: '1.2.3.4', critical: false, value: Uint8Array.of(5, 0) };
    return b.sample({ chain: b.chain((leaf) => add(extra)(add(extra)(leaf))) });
  }),
  mutation('an unknown critical extension twice', 'unknown_critical_extension', (b) => {
    const extra = { oid: '1.2.3.4', critical: true, value: Uint8Array.of(5, 0) };
    return b.sample({ chain: b.chain((leaf) => add(extra)(add(extra)(leaf))) });
  }),
  ...FIELDS.map(([field, oid]): ChainMutation => changedLeaf(`no ${field}`, `${field}_missing`, dropExtension(oid))),
  ...FIELDS.map(([field]) => malformed(`an empty ${field}`, field, new Uint8Array())),
  ...FIELDS.filter(([field]) => field !== 'sip' && field !== 'kexts').map(
    ([field, oid]): ChainMutation =>
      changedLeaf(
        `${field} in an OCTET STRING of its own`,
        `${field}_malformed`,
        eachExtension((extension) => [extension.oid === oid ? { ...extension, value: octetString(extension.value) } : extension]),
      ),
  ),
  malformed('SIP as BOOLEAN true', 'sip', boolean(true)),
  malformed('SIP as BOOLEAN false', 'sip', boolean(false)),
  malformed('SIP as a raw byte', 'sip', Uint8Array.of(0)),
  malformed('SIP as text', 'sip', utf8('0')),
  malformed('SIP as 2', 'sip', tlv(TAG.integer, Uint8Array.of(2))),
  malformed('SIP with a needless zero', 'sip', tlv(TAG.integer, Uint8Array.of(0, 0))),
  malformed('SIP with a byte after it', 'sip', Uint8Array.of(2, 1, 0, 0)),
  malformed('SIP in an OCTET STRING', 'sip', octetString(tlv(TAG.integer, Uint8Array.of(0)))),
  malformed('kexts as BOOLEAN false', 'kexts', boolean(false)),
  malformed('kexts as -1', 'kexts', tlv(TAG.integer, Uint8Array.of(0xff))),
  malformed('secure boot in lower case', 'secure_boot', utf8('full security')),
  malformed('secure boot with a space after it', 'secure_boot', utf8('Full Security ')),
  malformed('secure boot as UTF8String', 'secure_boot', utf8String('Full Security')),
  malformed('31 bytes of freshness', 'freshness', new Uint8Array(31).fill(4)),
  malformed('33 bytes of freshness', 'freshness', new Uint8Array(33).fill(4)),
  malformed('freshness in hexadecimal', 'freshness', utf8('ab'.repeat(32))),
  malformed('a serial number as PrintableString', 'serial', printableString(SAMPLE_DEVICE.serialNumber)),
  malformed('a serial number with a line break', 'serial', utf8('HH0K6TJY\r\n')),
  malformed('a serial number that is markup', 'serial', utf8('<b>HH0K6T')),
  malformed('a serial number with a zero byte', 'serial', utf8(`${SAMPLE_DEVICE.serialNumber}\0`)),
  malformed('a serial number in lower case', 'serial', utf8(SAMPLE_DEVICE.serialNumber.toLowerCase())),
  malformed('a UDID without its dash', 'udid', utf8(SAMPLE_DEVICE.provisioningUdid.replace('-', ''))),
  malformed('a UDID of a phone', 'udid', utf8('a'.repeat(40))),
  malformed('a board that is markup', 'board', utf8('<script>')),
  malformed('a version with letters of another script', 'os_version', utf8('26.4\u0661')),
];
