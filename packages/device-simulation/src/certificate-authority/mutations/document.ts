/** Mutations of the submitted document: count and size of certificates, base64, outermost encodings. */
import { concatBytes, fromBase64, toBase64, utf8 } from '@inference/protocol';
import { ecdsaWith, encodeExtension, subjectKeyIdentifier } from '../certificate.js';
import { bitString, explicit, integer, objectIdentifier, octetString, sequence, TAG, tlv } from '../der.js';
import type { ChainMutation, MutationBench } from '../mutation-bench.js';

/** Valid chain with leaf bytes changed after signing. */
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

/** Content of a value with a two-byte length, the form of every certificate here. */
const contentOf = (certificate: Uint8Array): Uint8Array => certificate.subarray(4);

const blankTail = (text: string): string => {
  // Sets the unused bits of the last base64 digit.
  const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  const end = text.indexOf('=');
  const last = digits.indexOf(text[end - 1] as string);
  return text.slice(0, end - 1) + digits[last + 1] + text.slice(end);
};

/** Leaf padded by a subject key identifier until its base64 ends in `=`. */
function paddedChain(bench: MutationBench): string[] {
  for (let size = 1; ; size++) {
    const extra = { oid: '2.5.29.14', critical: false, value: subjectKeyIdentifier(new Uint8Array(size).fill(7)) };
    const chain = bench.chain((leaf) => ({ ...leaf, extensions: [...leaf.extensions, extra] }));
    if (chain[0]?.endsWith('=')) return chain;
  }
}

function changedText(bench: MutationBench, change: (text: string) => string): string[] {
  const [leaf = '', issuer = ''] = paddedChain(bench);
  return [change(leaf), issuer];
}

export const documentMutations: readonly ChainMutation[] = [
  { name: 'no certificate', code: 'chain_count', make: (b) => b.sample({ chain: [] }) },
  { name: 'the leaf alone', code: 'chain_count', make: (b) => b.sample({ chain: b.chain().slice(0, 1) }) },
  {
    name: 'the root appended',
    code: 'chain_count',
    make: (b) => b.sample({ chain: [...b.chain(), toBase64(b.authority.rootCertificate)] }),
  },
  {
    name: 'the leaf twice before its issuer',
    code: 'chain_count',
    make: (b) => b.sample({ chain: [b.chain()[0] as string, ...b.chain()] }),
  },
  {
    name: 'a leaf of half a megabyte',
    code: 'chain_too_large',
    make: (b) =>
      b.sample({
        chain: b.chain((leaf) => ({
          ...leaf,
          extensions: [...leaf.extensions, { oid: '1.2.3', critical: false, value: new Uint8Array(500_000) }],
        })),
      }),
  },
  { name: 'a line feed in the base64', code: 'base64_not_canonical', make: (b) => b.sample({ chain: changedText(b, (t) => `${t}\n`) }) },
  {
    name: 'base64 without its padding',
    code: 'base64_not_canonical',
    make: (b) => b.sample({ chain: changedText(b, (t) => t.replace(/=+$/, '')) }),
  },
  {
    name: 'base64url',
    code: 'base64_not_canonical',
    make: (b) => b.sample({ chain: changedText(b, (t) => `${t.replaceAll('+', '-').replaceAll('/', '_').slice(0, 40)}-_${t.slice(42)}`) }),
  },
  { name: 'base64 with unused bits set', code: 'base64_not_canonical', make: (b) => b.sample({ chain: changedText(b, blankTail) }) },
  {
    name: 'PEM instead of base64',
    code: 'base64_not_canonical',
    make: (b) => b.sample({ chain: changedText(b, (t) => `-----BEGIN CERTIFICATE-----\n${t}\n-----END CERTIFICATE-----`) }),
  },
  { name: 'an empty certificate', code: 'der_malformed', make: (b) => b.sample({ chain: ['', b.chain()[1] as string] }) },
  { name: 'text instead of DER', code: 'der_malformed', make: (b) => b.sample({ chain: leafBytes(b, () => utf8('not a certificate')) }) },
  {
    name: 'the leaf cut short by a byte',
    code: 'der_malformed',
    make: (b) => b.sample({ chain: leafBytes(b, (leaf) => leaf.subarray(0, -1)) }),
  },
  {
    name: 'a byte after the leaf',
    code: 'der_trailing_bytes',
    make: (b) => b.sample({ chain: leafBytes(b, (leaf) => concatBytes(leaf, Uint8Array.of(0))) }),
  },
  {
    name: 'a second certificate after the leaf',
    code: 'der_trailing_bytes',
    make: (b) => b.sample({ chain: leafBytes(b, (leaf) => concatBytes(leaf, b.authority.issuerCertificate)) }),
  },
  {
    name: 'a byte after the issuer',
    code: 'der_trailing_bytes',
    make: (b) => b.sample({ chain: [b.chain()[0] as string, toBase64(concatBytes(b.authority.issuerCertificate, Uint8Array.of(0)))] }),
  },
  {
    name: 'indefinite length',
    code: 'der_malformed',
    make: (b) =>
      b.sample({ chain: leafBytes(b, (leaf) => concatBytes(Uint8Array.of(TAG.sequence, 0x80), contentOf(leaf), Uint8Array.of(0, 0))) }),
  },
  {
    name: 'a needlessly long length',
    code: 'der_malformed',
    make: (b) => b.sample({ chain: leafBytes(b, (leaf) => longLength(TAG.sequence, contentOf(leaf))) }),
  },
  {
    name: 'a needlessly long length inside what is signed',
    code: 'der_malformed',
    make: (b) => b.sample({ chain: b.chain((leaf) => ({ ...leaf, subject: longLength(TAG.sequence, leaf.subject.subarray(3)) })) }),
  },
  {
    name: 'a serial number with a needless zero',
    code: 'der_malformed',
    make: (b) => b.sample({ chain: b.chain((leaf) => ({ ...leaf, serialNumber: tlv(TAG.integer, Uint8Array.of(0, 1)) })) }),
  },
  {
    name: 'TRUE as 01 in an extension',
    code: 'der_malformed',
    make: (b) =>
      b.sample({
        chain: b.chain((leaf) => {
          const [first, ...rest] = leaf.extensions;
          if (first === undefined) throw new TypeError('the leaf has no extension');
          const critical = tlv(TAG.boolean, Uint8Array.of(1));
          return {
            ...leaf,
            extensions: [{ ...first, encoded: sequence(objectIdentifier(first.oid), critical, octetString(first.value)) }, ...rest],
          };
        }),
      }),
  },
  {
    name: 'a default value written out',
    code: 'certificate_malformed',
    make: (b) =>
      b.sample({
        chain: b.chain((leaf) => {
          const last = leaf.extensions.at(-1);
          if (last === undefined) throw new TypeError('the leaf has no extension');
          const notCritical = tlv(TAG.boolean, Uint8Array.of(0));
          const encoded = sequence(objectIdentifier(last.oid), notCritical, octetString(last.value));
          return { ...leaf, extensions: [...leaf.extensions.slice(0, -1), { ...last, encoded }] };
        }),
      }),
  },
  {
    name: 'an extension of nothing but its name',
    code: 'certificate_malformed',
    make: (b) =>
      b.sample({
        chain: b.chain((leaf) => ({
          ...leaf,
          extensions: [
            ...leaf.extensions,
            { oid: '1.2.3', critical: false, value: new Uint8Array(), encoded: sequence(objectIdentifier('1.2.3')) },
          ],
        })),
      }),
  },
  {
    name: 'version 1',
    code: 'certificate_malformed',
    make: (b) => b.sample({ chain: b.chain((leaf) => ({ ...leaf, version: explicit(0, integer(Uint8Array.of(0))) })) }),
  },
  {
    name: 'no version',
    code: 'certificate_malformed',
    make: (b) => b.sample({ chain: b.chain((leaf) => ({ ...leaf, version: new Uint8Array() })) }),
  },
  {
    name: 'a serial number that is negative',
    code: 'certificate_malformed',
    make: (b) => b.sample({ chain: b.chain((leaf) => ({ ...leaf, serialNumber: tlv(TAG.integer, Uint8Array.of(0x80)) })) }),
  },
  {
    name: 'a month that does not exist',
    code: 'certificate_malformed',
    make: (b) => b.sample({ chain: b.chain((leaf) => ({ ...leaf, notAfter: tlv(TAG.utcTime, utf8('261301000000Z')) })) }),
  },
  {
    name: 'a time without its Z',
    code: 'certificate_malformed',
    make: (b) => b.sample({ chain: b.chain((leaf) => ({ ...leaf, notBefore: tlv(TAG.utcTime, utf8('2606010000+00')) })) }),
  },
  {
    name: 'no extensions',
    code: 'certificate_malformed',
    make: (b) => b.sample({ chain: b.chain((leaf) => ({ ...leaf, extensions: [] })) }),
  },
  {
    name: 'a signature with unused bits',
    code: 'certificate_malformed',
    make: (b) =>
      b.sample({
        chain: leafBytes(b, () => {
          const signed = fromBase64(b.chain()[0] as string);
          // The signed part of a leaf has two length bytes, too.
          const part = signed.subarray(4, 8 + (((signed[6] as number) << 8) | (signed[7] as number)));
          return sequence(part, ecdsaWith('sha384'), bitString(new Uint8Array(104), 1));
        }),
      }),
  },
  {
    name: 'an extension list that is a set',
    code: 'certificate_malformed',
    make: (b) =>
      b.sample({
        chain: leafBytes(b, () => {
          const extensions = tlv(TAG.set, encodeExtension({ oid: '1.2.3', critical: false, value: new Uint8Array(1) }));
          return sequence(sequence(explicit(3, extensions)), ecdsaWith('sha384'), bitString(new Uint8Array(8)));
        }),
      }),
  },
];
