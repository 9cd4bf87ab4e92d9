/** Who is what in a chain: the leaf is no authority, and its issuer may sign exactly such leaves. */
import type { ChainRejection } from '@inference/protocol';
import { type Certificate, extensionValues } from './certificate.js';
import { basicConstraints, KEY_USAGE_BIT, keyUsageBits, STANDARD_EXTENSION_OIDS } from './standard-extensions.js';

type Refuse = (code: ChainRejection) => never;

/** Tells the first thing that is wrong to `refuse`, which must throw. */
export function requirePathRoles(leaf: Certificate, issuer: Certificate, refuse: Refuse): void {
  requireLeaf(leaf, refuse);
  requireIssuer(issuer, refuse);
}

function requireLeaf(leaf: Certificate, refuse: Refuse): void {
  const constraints = only(leaf, STANDARD_EXTENSION_OIDS.basicConstraints, refuse);
  if (constraints === null) refuse('leaf_constraints_missing');
  // What cannot be read might say that it is an authority.
  if (basicConstraints(constraints)?.isAuthority !== false) refuse('leaf_is_ca');
  const bits = usageOf(leaf, refuse);
  const mayIssue = bits?.has(KEY_USAGE_BIT.keyCertSign) || bits?.has(KEY_USAGE_BIT.crlSign);
  if (bits === null || mayIssue || !bits.has(KEY_USAGE_BIT.digitalSignature)) refuse('leaf_key_usage');
}

function requireIssuer(issuer: Certificate, refuse: Refuse): void {
  const value = only(issuer, STANDARD_EXTENSION_OIDS.basicConstraints, refuse);
  const constraints = value === null ? null : basicConstraints(value);
  if (constraints?.isAuthority !== true) refuse('issuer_not_ca');
  if (constraints.pathLength !== 0) refuse('issuer_path_length');
  if (!usageOf(issuer, refuse)?.has(KEY_USAGE_BIT.keyCertSign)) refuse('issuer_key_usage');
}

function usageOf(certificate: Certificate, refuse: Refuse): ReadonlySet<number> | null {
  const value = only(certificate, STANDARD_EXTENSION_OIDS.keyUsage, refuse);
  return value === null ? null : keyUsageBits(value);
}

function only(certificate: Certificate, oid: string, refuse: Refuse): Uint8Array | null {
  const [value, another] = extensionValues(certificate, oid);
  return another === undefined ? (value ?? null) : refuse('duplicate_extension');
}
