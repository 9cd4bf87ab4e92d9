/** Mutations of the encoding: number and size of certificates, base64, DER, members of the certificate. */
import { concatBytes, fromBase64, fromHex, toBase64, utf8 } from '@inference/protocol';
import { EXTENSION_OID, ecdsaWith, encodeExtension, nameAttribute, subjectKeyIdentifier } from '../certificate.js';
import { bitString, boolean, explicit, integer, objectIdentifier, octetString, sequence, set, TAG, tlv, utf8String } from '../der.js';
import { type ChainMutation, chainMutation, changedLeaf, type MutationBench, replace, signedPartOf } from '../mutation-bench.js';

/** Chain whose leaf is changed after signing. */
function leafBytes(bench: MutationBench, change: (leaf: Uint8Array) => Uint8Array): string[] {
  const [leaf, issuer] = bench.certificates() as [Uint8Array, Uint8Array];
  return [change(leaf), issuer].map(toBase64);
}

/** Tag, a length with one superfluous byte, content. */
function longLength(tag: number, content: Uint8Array): Uint8Array {
  const { length } = content;
  const digits = length < 0x80 ? [0x81, length] : length < 0x100 ? [0x82, 0, length] : [0x83, 0, length >> 8, length & 0xff];
  return concatBytes(Uint8Array.of(tag, ...digits), content);
}

/** Content of a DER value with a two-byte length, as every certificate here has. */
const contentOf = (certificate: Uint8Array): Uint8Array => certificate.subarray(4);

/** The digit before `=` ends in unused zero bits; the next digit of the alphabet has the lowest of them set. */
const withUnusedBitSet = (text: string): string => {
  const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  const end = text.indexOf('=');
  const last = digits.indexOf(text[end - 1] as string);
  return text.slice(0, end - 1) + digits[last + 1] + text.slice(end);
};

/** Chain whose leaf ends in `=` in base64. A subject key identifier of the right size pads the leaf. */
function paddedChain(bench: MutationBench): string[] {
  for (let size = 1; ; size++) {
    const extra = { oid: EXTENSION_OID.subjectKeyIdentifier, critical: false, value: subjectKeyIdentifier(new Uint8Array(size).fill(7)) };
    const chain = bench.chain((leaf) => ({ ...leaf, extensions: [...leaf.extensions, extra] }));
    if (chain[0]?.endsWith('=')) return chain;
  }
}

/** A sequence in a sequence, `depth` times. */
function nested(depth: number): Uint8Array {
  return depth === 0 ? sequence() : sequence(nested(depth - 1));
}

const ORGANIZATION = '2.5.4.10';
/** `[1] IMPLICIT UniqueIdentifier` (RFC 5280 section 4.1). */
const ISSUER_UNIQUE_ID = 0x81;

/** Chain with the leaf's base64 text changed. */
function changedText(bench: MutationBench, change: (text: string) => string): string[] {
  const [leaf = '', issuer = ''] = paddedChain(bench);
  return [change(leaf), issuer];
}

export const documentMutations: readonly ChainMutation[] = [
  chainMutation('no certificate', 'chain_count', () => []),
  chainMutation('the leaf alone', 'chain_count', (b) => b.chain().slice(0, 1)),
  chainMutation('the root appended', 'chain_count', (b) => [...b.chain(), toBase64(b.authority.rootCertificate)]),
  chainMutation('the leaf twice before its issuer', 'chain_count', (b) => [b.chain()[0] as string, ...b.chain()]),
  changedLeaf('a leaf of half a megabyte', 'chain_too_large', (leaf) => ({
    ...leaf,
    extensions: [...leaf.extensions, { oid: '1.2.3', critical: false, value: new Uint8Array(500_000) }],
  })),
  chainMutation('a line feed in the base64', 'base64_not_canonical', (b) => changedText(b, (t) => `${t}\n`)),
  chainMutation('base64 without its padding', 'base64_not_canonical', (b) => changedText(b, (t) => t.replace(/=+$/, ''))),
  chainMutation('base64url', 'base64_not_canonical', (b) =>
    changedText(b, (t) => `${t.replaceAll('+', '-').replaceAll('/', '_').slice(0, 40)}-_${t.slice(42)}`),
  ),
  chainMutation('base64 with unused bits set', 'base64_not_canonical', (b) => changedText(b, withUnusedBitSet)),
  chainMutation('PEM instead of base64', 'base64_not_canonical', (b) =>
    changedText(b, (t) => `-----BEGIN CERTIFICATE-----\n${t}\n-----END CERTIFICATE-----`),
  ),
  chainMutation('an empty certificate', 'der_malformed', (b) => ['', b.chain()[1] as string]),
  chainMutation('text instead of DER', 'der_malformed', (b) => leafBytes(b, () => utf8('not a certificate'))),
  chainMutation('the leaf cut short by a byte', 'der_malformed', (b) => leafBytes(b, (leaf) => leaf.subarray(0, -1))),
  chainMutation('a byte after the leaf', 'der_trailing_bytes', (b) => leafBytes(b, (leaf) => concatBytes(leaf, Uint8Array.of(0)))),
  chainMutation('a second certificate after the leaf', 'der_trailing_bytes', (b) =>
    leafBytes(b, (leaf) => concatBytes(leaf, b.authority.issuerCertificate)),
  ),
  chainMutation('a byte after the issuer', 'der_trailing_bytes', (b) => [
    b.chain()[0] as string,
    toBase64(concatBytes(b.authority.issuerCertificate, Uint8Array.of(0))),
  ]),
  chainMutation('indefinite length', 'der_malformed', (b) =>
    leafBytes(b, (leaf) => concatBytes(Uint8Array.of(TAG.sequence, 0x80), contentOf(leaf), Uint8Array.of(0, 0))),
  ),
  chainMutation('a needlessly long length', 'der_malformed', (b) => leafBytes(b, (leaf) => longLength(TAG.sequence, contentOf(leaf)))),
  changedLeaf('a needlessly long length inside what is signed', 'der_malformed', (leaf) => ({
    ...leaf,
    subject: longLength(TAG.sequence, leaf.subject.subarray(3)),
  })),
  changedLeaf('a serial number with a needless zero', 'der_malformed', replace({ serialNumber: tlv(TAG.integer, Uint8Array.of(0, 1)) })),
  changedLeaf('TRUE as 01 in an extension', 'der_malformed', (leaf) => {
    const [first, ...rest] = leaf.extensions;
    if (first === undefined) throw new TypeError('the leaf has no extension');
    const critical = tlv(TAG.boolean, Uint8Array.of(1));
    return {
      ...leaf,
      extensions: [{ ...first, encoded: sequence(objectIdentifier(first.oid), critical, octetString(first.value)) }, ...rest],
    };
  }),
  changedLeaf('a default value written out', 'certificate_malformed', (leaf) => {
    const last = leaf.extensions.at(-1);
    if (last === undefined) throw new TypeError('the leaf has no extension');
    const notCritical = tlv(TAG.boolean, Uint8Array.of(0));
    const encoded = sequence(objectIdentifier(last.oid), notCritical, octetString(last.value));
    return { ...leaf, extensions: [...leaf.extensions.slice(0, -1), { ...last, encoded }] };
  }),
  changedLeaf('an extension of nothing but its name', 'certificate_malformed', (leaf) => ({
    ...leaf,
    extensions: [
      ...leaf.extensions,
      { oid: '1.2.3', critical: false, value: new Uint8Array(), encoded: sequence(objectIdentifier('1.2.3')) },
    ],
  })),
  changedLeaf('an extension with a fourth member', 'certificate_malformed', (leaf) => ({
    ...leaf,
    extensions: [
      ...leaf.extensions,
      {
        oid: '1.2.3',
        critical: true,
        value: new Uint8Array(),
        encoded: sequence(objectIdentifier('1.2.3'), boolean(true), octetString(new Uint8Array()), tlv(TAG.null)),
      },
    ],
  })),
  changedLeaf('an extension whose name has a huge number', 'certificate_malformed', (leaf) => ({
    ...leaf,
    extensions: [
      ...leaf.extensions,
      {
        oid: '1.2.3',
        critical: false,
        value: new Uint8Array(),
        encoded: sequence(tlv(TAG.objectIdentifier, fromHex('2affffffffffffffffffff7f')), octetString(new Uint8Array())),
      },
    ],
  })),
  changedLeaf('a unique identifier of the issuer', 'certificate_malformed', (leaf) => ({
    ...leaf,
    publicKeyInfo: concatBytes(leaf.publicKeyInfo, tlv(ISSUER_UNIQUE_ID, Uint8Array.of(0, 1))),
  })),
  changedLeaf('an attribute of the subject whose type is no object identifier', 'certificate_malformed', (leaf) => ({
    ...leaf,
    subject: sequence(set(sequence(integer(Uint8Array.of(5)), utf8String('x')))),
  })),
  changedLeaf('a subject of sequences instead of sets', 'certificate_malformed', (leaf) => ({
    ...leaf,
    subject: sequence(sequence(sequence(objectIdentifier(ORGANIZATION), utf8String('x')))),
  })),
  ...[TAG.utf8String, TAG.printableString].map((tag) =>
    changedLeaf(`a name of type ${tag} that is no UTF-8`, 'der_malformed', (leaf) => ({
      ...leaf,
      subject: sequence(nameAttribute(ORGANIZATION, tlv(tag, Uint8Array.of(0xff)))),
    })),
  ),
  changedLeaf('a name of type 0', 'der_malformed', (leaf) => ({
    ...leaf,
    subject: sequence(nameAttribute(ORGANIZATION, Uint8Array.of(0, 0))),
  })),
  changedLeaf('values nested too deeply', 'der_malformed', (leaf) => ({
    ...leaf,
    subject: sequence(nameAttribute(ORGANIZATION, nested(16))),
  })),
  changedLeaf('version 1', 'certificate_malformed', replace({ version: explicit(0, integer(Uint8Array.of(0))) })),
  changedLeaf('no version', 'certificate_malformed', replace({ version: new Uint8Array() })),
  changedLeaf(
    'a serial number that is negative',
    'certificate_malformed',
    replace({ serialNumber: tlv(TAG.integer, Uint8Array.of(0x80)) }),
  ),
  changedLeaf('a month that does not exist', 'certificate_malformed', replace({ notAfter: tlv(TAG.utcTime, utf8('261301000000Z')) })),
  changedLeaf('a time without its Z', 'certificate_malformed', replace({ notBefore: tlv(TAG.utcTime, utf8('2606010000+00')) })),
  changedLeaf('no extensions', 'certificate_malformed', replace({ extensions: [] })),
  chainMutation('a signature with unused bits', 'certificate_malformed', (b) =>
    leafBytes(b, () => {
      const part = signedPartOf(fromBase64(b.chain()[0] as string));
      return sequence(part, ecdsaWith('sha384'), bitString(new Uint8Array(104), 1));
    }),
  ),
  chainMutation('an extension list that is a set', 'certificate_malformed', (b) =>
    leafBytes(b, () => {
      const extensions = tlv(TAG.set, encodeExtension({ oid: '1.2.3', critical: false, value: new Uint8Array(1) }));
      return sequence(sequence(explicit(3, extensions)), ecdsaWith('sha384'), bitString(new Uint8Array(8)));
    }),
  ),
];
