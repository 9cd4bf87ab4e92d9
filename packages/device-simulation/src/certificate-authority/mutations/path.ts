/** Mutations of the certification path (RFC 5280 section 6): issuing rights, chained names, keys, hashes, validity and anchor. */
import { fromBase64, fromHex, toBase64, utf8 } from '@inference/protocol';
import { SimulatedAuthority } from '../authority.js';
import { basicConstraints, EXTENSION_OID, ecdsaWith, encodeName, keyUsage } from '../certificate.js';
import { bitString, boolean, integer, objectIdentifier, sequence, TAG, time, tlv } from '../der.js';
import { p384Key, p384KeyInfo } from '../key.js';
import {
  type ChainMutation,
  chainMutation,
  changedIssuer,
  changedLeaf,
  dropExtension,
  type MutationBench,
  mutation,
  replace,
  SAMPLE_DEVICE,
  setExtension,
  signedPartOf,
} from '../mutation-bench.js';

const CONSTRAINTS = EXTENSION_OID.basicConstraints;
const KEY_USAGE = EXTENSION_OID.keyUsage;
const DAY_MS = 24 * 60 * 60_000;

/** Flips the last bit of a certificate, which belongs to the signature. */
function flippedSignature(certificate: string): string {
  const bytes = fromBase64(certificate);
  bytes[bytes.length - 1] = (bytes[bytes.length - 1] as number) ^ 1;
  return toBase64(bytes);
}

/** Leaf with the first character of its serial number changed after signing. */
function editedSerial(certificate: string): string {
  const bytes = Buffer.from(fromBase64(certificate));
  const at = bytes.indexOf(utf8(SAMPLE_DEVICE.serialNumber));
  bytes[at] = 'A'.charCodeAt(0);
  return toBase64(bytes);
}

/** Chain of an authority with the same names and other keys. */
function impostorChain(bench: MutationBench): string[] {
  const { now, random, freshness, leafKey } = bench;
  return bench.impostor.issue({ now, random, freshness, leafKey, device: SAMPLE_DEVICE }).certificates.map(toBase64);
}

/** Chain of an authority with other names, which no verifier pins. */
function strangerChain(bench: MutationBench): string[] {
  const { now, random, freshness, leafKey } = bench;
  const stranger = SimulatedAuthority.create({ now: now - 1000, random, names: { organization: 'Another Maker' } });
  return stranger.issue({ now, random, freshness, leafKey, device: SAMPLE_DEVICE }).certificates.map(toBase64);
}

/** The leaf of a chain acts as the issuer of another leaf. */
function leafAsIssuer(bench: MutationBench): string[] {
  const { now, random, freshness } = bench;
  const [parent = ''] = bench.chain();
  const victim = p384Key(random);
  const template = bench.authority.leafTemplate(victim, { now, random, freshness, device: SAMPLE_DEVICE });
  const issuer = encodeName({ commonName: 'not looked at before the constraints' });
  const [leaf = ''] = bench.chainSignedBy({ privateKey: bench.leafKey.privateKey }, () => ({ ...template, issuer }));
  return [leaf, parent];
}

const RSA_SHA384 = sequence(objectIdentifier('1.2.840.113549.1.1.12'), tlv(TAG.null));
const POINT_NOT_ON_CURVE = Uint8Array.of(4, ...new Uint8Array(96).fill(1));

export const pathMutations: readonly ChainMutation[] = [
  chainMutation('issuer before leaf', 'leaf_is_ca', (b) => [...b.chain()].reverse()),
  chainMutation('the issuer in the place of the leaf', 'leaf_is_ca', (b) => [b.chain()[1] as string, b.chain()[1] as string]),
  changedLeaf('a leaf that is a certificate authority', 'leaf_is_ca', setExtension(CONSTRAINTS, basicConstraints(true))),
  changedLeaf('a leaf without basic constraints', 'leaf_constraints_missing', dropExtension(CONSTRAINTS)),
  changedLeaf('basic constraints with FALSE written out', 'leaf_is_ca', setExtension(CONSTRAINTS, sequence(boolean(false)))),
  changedLeaf('a leaf with a path length', 'leaf_is_ca', setExtension(CONSTRAINTS, basicConstraints(false, 0))),
  changedLeaf('basic constraints that are no sequence', 'leaf_is_ca', setExtension(CONSTRAINTS, tlv(TAG.null))),
  changedLeaf('a leaf without key usage', 'leaf_key_usage', dropExtension(KEY_USAGE)),
  changedLeaf('a leaf that may sign certificates', 'leaf_key_usage', setExtension(KEY_USAGE, keyUsage('digitalSignature', 'keyCertSign'))),
  changedLeaf('a leaf that may not sign', 'leaf_key_usage', setExtension(KEY_USAGE, keyUsage('keyEncipherment', 'dataEncipherment'))),
  changedLeaf('key usage with trailing zero bits', 'leaf_key_usage', setExtension(KEY_USAGE, bitString(Uint8Array.of(0xf0), 0))),
  changedLeaf('key usage of more than nine bits', 'leaf_key_usage', setExtension(KEY_USAGE, bitString(Uint8Array.of(0x80, 0, 1), 0))),
  changedIssuer(
    'an issuer whose key usage has trailing zero bits',
    'issuer_key_usage',
    setExtension(KEY_USAGE, bitString(Uint8Array.of(0x06), 0)),
  ),
  changedIssuer(
    'an issuer with bytes after its path length',
    'issuer_not_ca',
    setExtension(CONSTRAINTS, sequence(boolean(true), integer(Uint8Array.of(0)), tlv(TAG.null))),
  ),
  changedIssuer(
    'an issuer whose path length is no number',
    'issuer_not_ca',
    setExtension(CONSTRAINTS, sequence(boolean(true), boolean(false))),
  ),
  changedIssuer('an issuer that may not sign certificates, without a path length', 'issuer_path_length', (template) =>
    setExtension(CONSTRAINTS, basicConstraints(true))(setExtension(KEY_USAGE, keyUsage('cRLSign'))(template)),
  ),
  chainMutation('a leaf as issuer', 'issuer_not_ca', leafAsIssuer),
  changedIssuer('an issuer that is no authority', 'issuer_not_ca', setExtension(CONSTRAINTS, basicConstraints(false))),
  changedIssuer('an issuer without basic constraints', 'issuer_not_ca', dropExtension(CONSTRAINTS)),
  changedIssuer('an issuer without key usage', 'issuer_key_usage', dropExtension(KEY_USAGE)),
  changedIssuer('an issuer that may sign only revocation lists', 'issuer_key_usage', setExtension(KEY_USAGE, keyUsage('cRLSign'))),
  changedIssuer('an issuer of path length 1', 'issuer_path_length', setExtension(CONSTRAINTS, basicConstraints(true, 1))),
  changedIssuer('an issuer without a path length', 'issuer_path_length', setExtension(CONSTRAINTS, basicConstraints(true))),
  changedLeaf('a leaf that names another issuer', 'names_not_chained', replace({ issuer: encodeName({ commonName: 'Another Sub CA' }) })),
  changedIssuer('an issuer of another name', 'names_not_chained', replace({ subject: encodeName({ commonName: 'Another Sub CA' }) })),
  mutation('names that chain by being empty', 'names_not_chained', (b) => {
    const [leaf = ''] = b.chain(replace({ issuer: sequence() }));
    const [, issuer = ''] = b.chainWithIssuer(replace({ subject: sequence() }));
    return b.sample({ chain: [leaf, issuer] });
  }),
  chainMutation('a leaf signed with SHA-256', 'signature_algorithm', (b) =>
    b.chainSignedBy({ hash: 'sha256' }, replace({ signatureAlgorithm: ecdsaWith('sha256') })),
  ),
  chainMutation('a leaf signed with SHA-1', 'signature_algorithm', (b) =>
    b.chainSignedBy({ hash: 'sha1' }, replace({ signatureAlgorithm: ecdsaWith('sha1') })),
  ),
  chainMutation('a leaf that says SHA-384 inside and SHA-256 outside', 'signature_algorithm', (b) =>
    b.chainSignedBy({ hash: 'sha256' }, replace({ outerSignatureAlgorithm: ecdsaWith('sha256') })),
  ),
  chainMutation('a leaf signed by an RSA key', 'signature_algorithm', (b) =>
    b.chainSignedBy({ privateKey: b.foreignKey('rsa').privateKey }, replace({ signatureAlgorithm: RSA_SHA384 })),
  ),
  changedIssuer('an issuer signed with SHA-256', 'signature_algorithm', replace({ signatureAlgorithm: ecdsaWith('sha256') }), {
    hash: 'sha256',
  }),
  changedLeaf(
    'parameters in the signature algorithm',
    'signature_algorithm',
    replace({ signatureAlgorithm: sequence(objectIdentifier('1.2.840.10045.4.3.3'), tlv(TAG.null)) }),
  ),
  ...(['rsa', 'P-256', 'P-521'] as const).flatMap((kind): ChainMutation[] => [
    chainMutation(`a leaf with a key of ${kind}`, 'leaf_key_unsupported', (b) =>
      b.chain(replace({ publicKeyInfo: b.foreignKey(kind).info })),
    ),
    chainMutation(`an issuer with a key of ${kind}`, 'issuer_key_unsupported', (b) =>
      b.chainWithIssuer(replace({ publicKeyInfo: b.foreignKey(kind).info })),
    ),
  ]),
  chainMutation('a leaf key in compressed form', 'leaf_key_unsupported', (b) =>
    b.chain(replace({ publicKeyInfo: p384KeyInfo(Uint8Array.of(2, ...b.leafKey.point.subarray(1, 49))) })),
  ),
  changedLeaf(
    'a leaf key that is no point of the curve',
    'leaf_key_unsupported',
    replace({ publicKeyInfo: p384KeyInfo(POINT_NOT_ON_CURVE) }),
  ),
  changedIssuer(
    'an issuer key that is no point of the curve',
    'issuer_key_unsupported',
    replace({ publicKeyInfo: p384KeyInfo(POINT_NOT_ON_CURVE) }),
  ),
  chainMutation('a bit of the leaf signature flipped', 'leaf_signature', (b) => [
    flippedSignature(b.chain()[0] as string),
    b.chain()[1] as string,
  ]),
  chainMutation('a serial number edited after signing', 'leaf_signature', (b) => [
    editedSerial(b.chain()[0] as string),
    b.chain()[1] as string,
  ]),
  chainMutation('a leaf signed by the key it certifies', 'leaf_signature', (b) => b.chainSignedBy({ privateKey: b.leafKey.privateKey })),
  chainMutation('a leaf signed with SHA-256 that says SHA-384', 'leaf_signature', (b) => b.chainSignedBy({ hash: 'sha256' })),
  mutation('a leaf with the signature of zero and zero', 'leaf_signature', (b) => {
    const [leaf = '', issuer = ''] = b.chain();
    const part = signedPartOf(fromBase64(leaf));
    return b.sample({ chain: [toBase64(sequence(part, ecdsaWith('sha384'), bitString(fromHex('3006020100020100')))), issuer] });
  }),
  chainMutation('an impostor of the same names issues the leaf', 'leaf_signature', (b) => [
    impostorChain(b)[0] as string,
    b.chain()[1] as string,
  ]),
  mutation('a leaf that is not valid yet', 'leaf_not_yet_valid', (b) => b.sample({ now: b.now - 1 })),
  mutation('an expired leaf', 'leaf_expired', (b) => b.sample({ now: b.now + 92 * DAY_MS })),
  chainMutation('an issuer that is not valid yet', 'issuer_not_yet_valid', (b) =>
    b.chainWithIssuer(replace({ notBefore: time(b.now + DAY_MS) })),
  ),
  chainMutation('an expired issuer', 'issuer_expired', (b) => b.chainWithIssuer(replace({ notAfter: time(b.now) }))),
  chainMutation('an authority of other names', 'anchor_name', strangerChain),
  changedIssuer('an issuer that names another root', 'anchor_name', replace({ issuer: encodeName({ commonName: 'Another Root' }) })),
  chainMutation('an impostor with the right names and other keys', 'anchor_signature', impostorChain),
  chainMutation('an issuer signed by its own key', 'anchor_signature', (b) =>
    b.chainWithIssuer((same) => same, { privateKey: b.authority.issuerKey.privateKey }),
  ),
  chainMutation('a bit of the issuer signature flipped', 'anchor_signature', (b) => [
    b.chain()[0] as string,
    flippedSignature(b.chain()[1] as string),
  ]),
];
