/**
 * Recomputes the claims of attestation records from their evidence, and marks claims that only the coordinator makes.
 *
 * Not proven: that the attested machine holds the enclave key (keys can be relayed), and which program runs there. `maker` means
 * Apple, the manufacturer of the machines.
 */
import {
  type AttestationFeed,
  AttestationFeedSchema,
  type AttestationRecord,
  type EnclaveEvidence,
  fromBase64,
  lazyValidator,
} from '@inference/protocol';
import { APPLE_ENTERPRISE_ATTESTATION_ROOT } from '../chain/anchor.js';
import type { DeviceChainVerdict } from '../chain/verify-device-chain.js';
import { type ActiveTrustAnchor, certificateFindings, managementFindings } from './certificate-evidence.js';
import { compared, enclaveEvidenceOf, type Finding, type FindingResult } from './finding.js';
import { signedFindings } from './signed-findings.js';

export interface RecordVerdict {
  readonly providerId: string;
  readonly findings: readonly Finding[];
  /** Whether no claim is contradicted. */
  readonly consistent: boolean;
  /** Evidence for the claim that the key lives in a Secure Enclave, computed from the findings. */
  readonly enclave: EnclaveEvidence;
}

export interface FeedVerdict {
  /** Anchor of the chains: the maker's pinned root, or the root that a simulation's feed names. */
  readonly anchor: 'maker' | 'simulated';
  readonly records: readonly RecordVerdict[];
}

/** Reason why a feed cannot be evaluated. */
export class FeedError extends Error {
  constructor(reason: string) {
    super(reason);
    this.name = 'FeedError';
  }
}

const APPLE: ActiveTrustAnchor = { anchor: APPLE_ENTERPRISE_ATTESTATION_ROOT, simulated: false };
const feedValidator = lazyValidator(AttestationFeedSchema);

export const VERIFICATION_STAGES = ['enclave_key', 'certificate_chain', 'device_management', 'trust_level'] as const;
export type VerificationStage = (typeof VERIFICATION_STAGES)[number];

export interface StageVerdict {
  readonly stage: VerificationStage;
  readonly findings: readonly Finding[];
  /** In stage `certificate_chain`: the verdict on the managed-device chain; null: no chain to verify. */
  readonly chain: DeviceChainVerdict | null;
}

/** `maker`: only the pinned root, for callers that expect real hardware. `published`: also the root of a simulation's feed. */
export type AcceptedAnchors = 'maker' | 'published';

/** Verifies every record of a feed. `now` in milliseconds. Throws {@link FeedError} for an invalid feed. */
export function verifyFeed(downloaded: unknown, now: number, accepted: AcceptedAnchors = 'published'): FeedVerdict {
  const { feed, anchor } = openFeed(downloaded, accepted);
  return { anchor: anchor.simulated ? 'simulated' : 'maker', records: feed.providers.map((record) => verifyRecord(record, now, anchor)) };
}

/** Checks the shape of a feed and selects the anchor of its chains. Throws {@link FeedError} for an invalid feed. */
export function openFeed(
  downloaded: unknown,
  accepted: AcceptedAnchors = 'published',
): { readonly feed: AttestationFeed; readonly anchor: ActiveTrustAnchor } {
  const feed = readFeed(downloaded);
  return { feed, anchor: accepted === 'maker' ? APPLE : anchorOf(feed) };
}

export function verifyRecord(record: AttestationRecord, now: number, anchor: ActiveTrustAnchor = APPLE): RecordVerdict {
  const stages = verifyInStages(record, now, anchor);
  for (;;) {
    const { done, value } = stages.next();
    if (done) return value;
  }
}

/** As {@link verifyRecord}, stage by stage, for displays of progress. Returns the verdict. */
export function* verifyInStages(
  record: AttestationRecord,
  now: number,
  anchor: ActiveTrustAnchor = APPLE,
): Generator<StageVerdict, RecordVerdict, void> {
  const findings: Finding[] = [];
  const stage = (name: VerificationStage, found: readonly Finding[], chain: DeviceChainVerdict | null = null): StageVerdict => {
    findings.push(...found);
    return { stage: name, findings: found, chain };
  };
  yield stage('enclave_key', signedFindings(record, now).findings);
  const certificates = certificateFindings(record, anchor, now);
  yield stage('certificate_chain', certificates.findings, certificates.chain);
  yield stage('device_management', managementFindings(record));
  yield stage('trust_level', [trustFinding(record, findings, anchor), ...publishedEvidence(record, findings)]);
  const consistent = findings.every((finding) => finding.result !== 'contradicted');
  return { providerId: record.provider_id, findings, consistent, enclave: enclaveEvidenceOf(record, findings) };
}

/**
 * Compares the claimed trust level with the level that the other findings support. `hardware` needs all `parts`, because
 * certificates alone do not suffice: a machine attests any nonce.
 */
function trustFinding(record: AttestationRecord, findings: readonly Finding[], anchor: ActiveTrustAnchor): Finding {
  const parts = ['attested', 'sip_enabled', 'secure_boot_enabled', 'mda_verified', 'mda_serial', 'mdm_verified'];
  const found = parts.map((claim) => findings.find((finding) => finding.claim === claim));
  const holds =
    (anchor.simulated || !record.simulated) &&
    // Without a sealing key in use, a provider has no trust level, and the record states the lower one.
    record.key_statement !== null &&
    found.every((finding) => finding !== undefined && isSupported(finding));
  const supported = holds ? 'hardware' : 'self_signed';
  const how =
    supported === 'hardware'
      ? 'Challenge, protections and certificates support it; only the coordinator states that device management agrees.'
      : 'Without a sealing key, certificates of the manufacturer and the cross-check of device management, only the machine itself makes these claims.';
  const finding = compared('trust_level', record.trust_level, supported, how);
  if (finding.result !== 'reproduced' || supported !== 'hardware') return finding;
  const simulated: FindingResult = found.some((part) => part?.result === 'simulated') ? 'simulated' : 'word';
  return { ...finding, result: simulated };
}

/** One missed challenge does not lower the trust level: a good answer in the record supports it, with `attested` false too. */
function isSupported({ claim, value, result }: Finding): boolean {
  if (claim === 'attested' && result === 'word') return true;
  return value !== false && result !== 'contradicted';
}

/** Compares the feed's own `enclave_evidence`, if present, with the evidence from the other findings. */
function publishedEvidence(record: AttestationRecord, findings: readonly Finding[]): Finding[] {
  const { enclave_evidence: published } = record;
  if (published === undefined) return [];
  const how =
    'Certified: a certificate chain of the manufacturer is bound to the key. Claimed: only the machine states it. Simulated: neither.';
  return [compared('enclave_evidence', published, enclaveEvidenceOf(record, findings), how)];
}

function readFeed(downloaded: unknown): AttestationFeed {
  if (feedValidator().Check(downloaded)) return downloaded as AttestationFeed;
  const [first] = feedValidator().Errors(downloaded);
  throw new FeedError(`This is no attestation feed: ${first?.instancePath || '/'} ${first?.message ?? 'is not valid'}.`);
}

/** The pinned anchor, unless the feed declares its own anchor a simulation. */
function anchorOf({ trust_anchor: published }: AttestationFeed): ActiveTrustAnchor {
  if (!published.simulated) return APPLE;
  try {
    return { anchor: { name: fromBase64(published.name), publicKey: fromBase64(published.public_key) }, simulated: true };
  } catch {
    throw new FeedError('The simulated anchor is not in canonical base64.');
  }
}
