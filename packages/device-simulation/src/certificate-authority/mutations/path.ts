/** Mutations of the path: issuing rights, chained names, keys, hashes, validity and anchor. */
import { fromBase64, fromHex, toBase64, utf8 } from '@inference/protocol';
import { SimulatedAuthority } from '../authority.js';
import { basicConstraints, type CertificateTemplate, type Extension, ecdsaWith, encodeName, keyUsage } from '../certificate.js';
import { bitString, objectIdentifier, sequence, TAG, time, tlv } from '../der.js';
import { p384Key, p384KeyInfo } from '../key.js';
import { type ChainMutation, DEVICE, type MutationBench } from '../mutation-bench.js';

const CONSTRAINTS = '2.5.29.19';
const KEY_USAGE = '2.5.29.15';
const DAY_MS = 24 * 60 * 60_000;

type Change = (template: CertificateTemplate) => CertificateTemplate;

const withExtension =
  (oid: string, change: (extension: Extension) => Extension | null): Change =>
  (template) => ({
    ...template,
    extensions: template.extensions.flatMap((extension) => (extension.oid === oid ? (change(extension) ?? []) : extension)),
  });
const value = (oid: string, bytes: Uint8Array): Change => withExtension(oid, (extension) => ({ ...extension, value: bytes }));
const without = (oid: string): Change => withExtension(oid, () => null);
const last = (certificate: string): Uint8Array => fromBase64(certificate);

/** Leaf with one flipped signature bit. */
function flippedSignature(certificate: string): string {
  const bytes = last(certificate);
  bytes[bytes.length - 1] = (bytes[bytes.length - 1] as number) ^ 1;
  return toBase64(bytes);
}

/** Leaf with one digit of its serial number changed after signing. */
function editedSerial(certificate: string): string {
  const bytes = Buffer.from(last(certificate));
  const at = bytes.indexOf(utf8(DEVICE.serialNumber));
  bytes[at] = 'A'.charCodeAt(0);
  return toBase64(bytes);
}

function otherAuthority(bench: MutationBench): string[] {
  const { now, random, freshness, leafKey } = bench;
  return bench.impostor.issue({ now, random, freshness, leafKey, device: DEVICE }).certificates.map(toBase64);
}

/** Authority under other names, pinned by no verifier. */
function strangerChain(bench: MutationBench): string[] {
  const { now, random, freshness, leafKey } = bench;
  const stranger = SimulatedAuthority.create({ now: now - 1000, random, names: { organization: 'Another Maker' } });
  return stranger.issue({ now, random, freshness, leafKey, device: DEVICE }).certificates.map(toBase64);
}

/** The leaf of a chain acts as the issuer of another leaf. */
function leafAsIssuer(bench: MutationBench): string[] {
  const { now, random, freshness } = bench;
  const [parent = ''] = bench.chain();
  const victim = p384Key(random);
  const template = bench.authority.leafTemplate(victim, { now, random, freshness, device: DEVICE });
  const issuer = encodeName({ commonName: 'not looked at before the constraints' });
  const [leaf = ''] = bench.chainSignedBy({ privateKey: bench.leafKey.privateKey }, () => ({ ...template, issuer }));
  return [leaf, parent];
}

const RSA_SHA384 = sequence(objectIdentifier('1.2.840.113549.1.1.12'), tlv(TAG.null));
const POINT_NOT_ON_CURVE = Uint8Array.of(4, ...new Uint8Array(96).fill(1));

export const pathMutations: readonly ChainMutation[] = [
  { name: 'issuer before leaf', code: 'leaf_is_ca', make: (b) => b.sample({ chain: [...b.chain()].reverse() }) },
  {
    name: 'the issuer in the place of the leaf',
    code: 'leaf_is_ca',
    make: (b) => b.sample({ chain: [b.chain()[1] as string, b.chain()[1] as string] }),
  },
  {
    name: 'a leaf that is a certificate authority',
    code: 'leaf_is_ca',
    make: (b) => b.sample({ chain: b.chain(value(CONSTRAINTS, basicConstraints(true))) }),
  },
  {
    name: 'a leaf without basic constraints',
    code: 'leaf_constraints_missing',
    make: (b) => b.sample({ chain: b.chain(without(CONSTRAINTS)) }),
  },
  { name: 'a leaf without key usage', code: 'leaf_key_usage', make: (b) => b.sample({ chain: b.chain(without(KEY_USAGE)) }) },
  {
    name: 'a leaf that may sign certificates',
    code: 'leaf_key_usage',
    make: (b) => b.sample({ chain: b.chain(value(KEY_USAGE, keyUsage(0, 5))) }),
  },
  {
    name: 'a leaf that may not sign',
    code: 'leaf_key_usage',
    make: (b) => b.sample({ chain: b.chain(value(KEY_USAGE, keyUsage(2, 3))) }),
  },
  {
    name: 'key usage with trailing zero bits',
    code: 'leaf_key_usage',
    make: (b) => b.sample({ chain: b.chain(value(KEY_USAGE, bitString(Uint8Array.of(0xf0), 0))) }),
  },
  { name: 'a leaf as issuer', code: 'issuer_not_ca', make: (b) => b.sample({ chain: leafAsIssuer(b) }) },
  {
    name: 'an issuer that is no authority',
    code: 'issuer_not_ca',
    make: (b) => b.sample({ chain: b.chainWithIssuer(value(CONSTRAINTS, basicConstraints(false))) }),
  },
  {
    name: 'an issuer without basic constraints',
    code: 'issuer_not_ca',
    make: (b) => b.sample({ chain: b.chainWithIssuer(without(CONSTRAINTS)) }),
  },
  {
    name: 'an issuer without key usage',
    code: 'issuer_key_usage',
    make: (b) => b.sample({ chain: b.chainWithIssuer(without(KEY_USAGE)) }),
  },
  {
    name: 'an issuer that may sign only revocation lists',
    code: 'issuer_key_usage',
    make: (b) => b.sample({ chain: b.chainWithIssuer(value(KEY_USAGE, keyUsage(6))) }),
  },
  {
    name: 'an issuer of path length 1',
    code: 'issuer_path_length',
    make: (b) => b.sample({ chain: b.chainWithIssuer(value(CONSTRAINTS, basicConstraints(true, 1))) }),
  },
  {
    name: 'an issuer without a path length',
    code: 'issuer_path_length',
    make: (b) => b.sample({ chain: b.chainWithIssuer(value(CONSTRAINTS, basicConstraints(true))) }),
  },
  {
    name: 'a leaf that names another issuer',
    code: 'names_not_chained',
    make: (b) => b.sample({ chain: b.chain((leaf) => ({ ...leaf, issuer: encodeName({ commonName: 'Another Sub CA' }) })) }),
  },
  {
    name: 'an issuer of another name',
    code: 'names_not_chained',
    make: (b) => b.sample({ chain: b.chainWithIssuer((issuer) => ({ ...issuer, subject: encodeName({ commonName: 'Another Sub CA' }) })) }),
  },
  {
    name: 'names that chain by being empty',
    code: 'names_not_chained',
    make: (b) => {
      const [leaf = ''] = b.chain((template) => ({ ...template, issuer: sequence() }));
      const [, issuer = ''] = b.chainWithIssuer((template) => ({ ...template, subject: sequence() }));
      return b.sample({ chain: [leaf, issuer] });
    },
  },
  {
    name: 'a leaf signed with SHA-256',
    code: 'signature_algorithm',
    make: (b) => b.sample({ chain: b.chainSignedBy({ hash: 'sha256' }, (leaf) => ({ ...leaf, signatureAlgorithm: ecdsaWith('sha256') })) }),
  },
  {
    name: 'a leaf signed with SHA-1',
    code: 'signature_algorithm',
    make: (b) => b.sample({ chain: b.chainSignedBy({ hash: 'sha1' }, (leaf) => ({ ...leaf, signatureAlgorithm: ecdsaWith('sha1') })) }),
  },
  {
    name: 'a leaf that says SHA-384 inside and SHA-256 outside',
    code: 'signature_algorithm',
    make: (b) =>
      b.sample({ chain: b.chainSignedBy({ hash: 'sha256' }, (leaf) => ({ ...leaf, outerSignatureAlgorithm: ecdsaWith('sha256') })) }),
  },
  {
    name: 'a leaf signed by an RSA key',
    code: 'signature_algorithm',
    make: (b) =>
      b.sample({
        chain: b.chainSignedBy({ privateKey: b.foreignKey('rsa').privateKey }, (leaf) => ({ ...leaf, signatureAlgorithm: RSA_SHA384 })),
      }),
  },
  {
    name: 'an issuer signed with SHA-256',
    code: 'signature_algorithm',
    make: (b) =>
      b.sample({ chain: b.chainWithIssuer((issuer) => ({ ...issuer, signatureAlgorithm: ecdsaWith('sha256') }), { hash: 'sha256' }) }),
  },
  {
    name: 'parameters in the signature algorithm',
    code: 'signature_algorithm',
    make: (b) =>
      b.sample({
        chain: b.chain((leaf) => ({
          ...leaf,
          signatureAlgorithm: sequence(objectIdentifier('1.2.840.10045.4.3.3'), tlv(TAG.null)),
        })),
      }),
  },
  ...(['rsa', 'P-256', 'P-521'] as const).flatMap((kind): ChainMutation[] => [
    {
      name: `a leaf with a key of ${kind}`,
      code: 'leaf_key_unsupported',
      make: (b) => b.sample({ chain: b.chain((leaf) => ({ ...leaf, publicKeyInfo: b.foreignKey(kind).info })) }),
    },
    {
      name: `an issuer with a key of ${kind}`,
      code: 'issuer_key_unsupported',
      make: (b) => b.sample({ chain: b.chainWithIssuer((issuer) => ({ ...issuer, publicKeyInfo: b.foreignKey(kind).info })) }),
    },
  ]),
  {
    name: 'a leaf key in compressed form',
    code: 'leaf_key_unsupported',
    make: (b) =>
      b.sample({
        chain: b.chain((leaf) => ({ ...leaf, publicKeyInfo: p384KeyInfo(Uint8Array.of(2, ...b.leafKey.point.subarray(1, 49))) })),
      }),
  },
  {
    name: 'a leaf key that is no point of the curve',
    code: 'leaf_key_unsupported',
    make: (b) => b.sample({ chain: b.chain((leaf) => ({ ...leaf, publicKeyInfo: p384KeyInfo(POINT_NOT_ON_CURVE) })) }),
  },
  {
    name: 'an issuer key that is no point of the curve',
    code: 'issuer_key_unsupported',
    make: (b) => b.sample({ chain: b.chainWithIssuer((issuer) => ({ ...issuer, publicKeyInfo: p384KeyInfo(POINT_NOT_ON_CURVE) })) }),
  },
  {
    name: 'a bit of the leaf signature flipped',
    code: 'leaf_signature',
    make: (b) => b.sample({ chain: [flippedSignature(b.chain()[0] as string), b.chain()[1] as string] }),
  },
  {
    name: 'a serial number edited after signing',
    code: 'leaf_signature',
    make: (b) => b.sample({ chain: [editedSerial(b.chain()[0] as string), b.chain()[1] as string] }),
  },
  {
    name: 'a leaf signed by the key it certifies',
    code: 'leaf_signature',
    make: (b) => b.sample({ chain: b.chainSignedBy({ privateKey: b.leafKey.privateKey }) }),
  },
  {
    name: 'a leaf signed with SHA-256 that says SHA-384',
    code: 'leaf_signature',
    make: (b) => b.sample({ chain: b.chainSignedBy({ hash: 'sha256' }) }),
  },
  {
    name: 'a leaf with the signature of zero and zero',
    code: 'leaf_signature',
    make: (b) => {
      const [leaf = '', issuer = ''] = b.chain();
      const bytes = last(leaf);
      const part = bytes.subarray(4, 8 + (((bytes[6] as number) << 8) | (bytes[7] as number)));
      return b.sample({ chain: [toBase64(sequence(part, ecdsaWith('sha384'), bitString(fromHex('3006020100020100')))), issuer] });
    },
  },
  {
    name: 'an impostor of the same names issues the leaf',
    code: 'leaf_signature',
    make: (b) => b.sample({ chain: [otherAuthority(b)[0] as string, b.chain()[1] as string] }),
  },
  { name: 'a leaf that is not valid yet', code: 'leaf_not_yet_valid', make: (b) => b.sample({ now: b.now - 1 }) },
  { name: 'an expired leaf', code: 'leaf_expired', make: (b) => b.sample({ now: b.now + 92 * DAY_MS }) },
  {
    name: 'an issuer that is not valid yet',
    code: 'issuer_not_yet_valid',
    make: (b) => b.sample({ chain: b.chainWithIssuer((issuer) => ({ ...issuer, notBefore: time(b.now + DAY_MS) })) }),
  },
  {
    name: 'an expired issuer',
    code: 'issuer_expired',
    make: (b) => b.sample({ chain: b.chainWithIssuer((issuer) => ({ ...issuer, notAfter: time(b.now) })) }),
  },
  { name: 'an authority of other names', code: 'anchor_name', make: (b) => b.sample({ chain: strangerChain(b) }) },
  {
    name: 'an issuer that names another root',
    code: 'anchor_name',
    make: (b) => b.sample({ chain: b.chainWithIssuer((issuer) => ({ ...issuer, issuer: encodeName({ commonName: 'Another Root' }) })) }),
  },
  {
    name: 'an impostor with the right names and other keys',
    code: 'anchor_signature',
    make: (b) => b.sample({ chain: otherAuthority(b) }),
  },
  {
    name: 'an issuer signed by its own key',
    code: 'anchor_signature',
    make: (b) => b.sample({ chain: b.chainWithIssuer((same) => same, { privateKey: b.authority.issuerKey.privateKey }) }),
  },
  {
    name: 'a bit of the issuer signature flipped',
    code: 'anchor_signature',
    make: (b) => b.sample({ chain: [b.chain()[0] as string, flippedSignature(b.chain()[1] as string)] }),
  },
];
