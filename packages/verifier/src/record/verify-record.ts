/**
 * Verification of the public attestation feed: computes every claim again from the evidence beside it, and says which claims
 * nothing but the coordinator's word supports. It never proves that the enclave key lives in the attested machine (a key can
 * be relayed), nor what program runs there or what it keeps in memory.
 */
import { type AttestationFeed, AttestationFeedSchema, type AttestationRecord, type EnclaveEvidence, fromBase64 } from '@inference/protocol';
import { Compile } from 'typebox/compile';
import { APPLE_ENTERPRISE_ATTESTATION_ROOT } from '../chain/anchor.js';
import type { DeviceChainVerdict } from '../chain/verify-device-chain.js';
import { type ActiveTrustAnchor, certificateFindings, managementFindings } from './certificate-evidence.js';
import { compared, enclaveEvidenceOf, type Finding, type FindingResult } from './finding.js';
import { signedFindings } from './signed-findings.js';

export interface RecordVerdict {
  readonly providerId: string;
  readonly findings: readonly Finding[];
  /** No claim is contradicted. */
  readonly consistent: boolean;
  /** What supports the claim that the key is kept in a Secure Enclave, computed from the findings. */
  readonly enclave: EnclaveEvidence;
}

export interface FeedVerdict {
  /** Whether chains are verified to the maker's pinned root or to a simulation that the feed names. */
  readonly anchor: 'maker' | 'simulated';
  readonly records: readonly RecordVerdict[];
}

/** Why a feed cannot be judged at all. */
export class FeedError extends Error {
  constructor(reason: string) {
    super(reason);
    this.name = 'FeedError';
  }
}

const MAKER: ActiveTrustAnchor = { anchor: APPLE_ENTERPRISE_ATTESTATION_ROOT, simulated: false };
const feedValidator = Compile(AttestationFeedSchema);

/** The parts of a verification, in their order. */
export const VERIFICATION_STAGES = ['enclave_key', 'makers_chain', 'device_management', 'trust_level'] as const;
export type VerificationStage = (typeof VERIFICATION_STAGES)[number];

/** What one stage found. */
export interface StageVerdict {
  readonly stage: VerificationStage;
  readonly findings: readonly Finding[];
  /** Of the stage `makers_chain`: how far the managed-device chain came; null when there was none to verify. */
  readonly chain: DeviceChainVerdict | null;
}

/** Judges a feed as it was downloaded. Throws {@link FeedError} when it is none. `now` in milliseconds. */
export function verifyFeed(downloaded: unknown, now: number): FeedVerdict {
  const { feed, anchor } = openFeed(downloaded);
  return {
    anchor: anchor.simulated ? 'simulated' : 'maker',
    records: feed.providers.map((record) => verifyRecord(record, now, anchor)),
  };
}

/** A feed whose shape was checked, and the anchor that its chains are verified to. Throws {@link FeedError} when it is none. */
export function openFeed(downloaded: unknown): { readonly feed: AttestationFeed; readonly anchor: ActiveTrustAnchor } {
  const feed = readFeed(downloaded);
  return { feed, anchor: anchorOf(feed) };
}

/** Judges one record. The anchor is the maker's unless given. */
export function verifyRecord(record: AttestationRecord, now: number, anchor: ActiveTrustAnchor = MAKER): RecordVerdict {
  const stages = verifyInStages(record, now, anchor);
  for (;;) {
    const { done, value } = stages.next();
    if (done) return value;
  }
}

/** The same, stage by stage, for those who show what is found while it is found. Returns the verdict. */
export function* verifyInStages(
  record: AttestationRecord,
  now: number,
  anchor: ActiveTrustAnchor = MAKER,
): Generator<StageVerdict, RecordVerdict, void> {
  const findings: Finding[] = [];
  const stage = (name: VerificationStage, found: readonly Finding[], chain: DeviceChainVerdict | null = null): StageVerdict => {
    findings.push(...found);
    return { stage: name, findings: found, chain };
  };
  yield stage('enclave_key', signedFindings(record, now).findings);
  const certificates = certificateFindings(record, anchor, now);
  yield stage('makers_chain', certificates.findings, certificates.chain);
  yield stage('device_management', managementFindings(record));
  yield stage('trust_level', [trustFinding(record, findings, anchor), ...publishedEvidence(record, findings)]);
  const consistent = findings.every((finding) => finding.result !== 'contradicted');
  return { providerId: record.provider_id, findings, consistent, enclave: enclaveEvidenceOf(record, findings) };
}

/**
 * The level that the findings support: `hardware` needs every part, and stands on the weakest of them. A machine attests for
 * whatever nonce it is given, so the maker's certificates raise no key that lives in software.
 */
function trustFinding(record: AttestationRecord, findings: readonly Finding[], anchor: ActiveTrustAnchor): Finding {
  const parts = ['attested', 'sip_enabled', 'secure_boot_enabled', 'mda_verified', 'mda_serial', 'mdm_verified'];
  const found = parts.map((claim) => findings.find((finding) => finding.claim === claim));
  const holds =
    (anchor.simulated || !record.simulated) &&
    found.every((finding) => finding !== undefined && finding.value !== false && finding.result !== 'contradicted');
  const supported = holds ? 'hardware' : 'self_signed';
  const how =
    supported === 'hardware'
      ? 'Challenge, protections and certificates support it; that device management agrees is the word of the coordinator.'
      : 'Without certificates of the maker and the cross-check of device management it is the machine that speaks for itself.';
  const finding = compared('trust_level', record.trust_level, supported, how);
  if (finding.result !== 'reproduced' || supported !== 'hardware') return finding;
  const simulated: FindingResult = found.some((part) => part?.result === 'simulated') ? 'simulated' : 'word';
  return { ...finding, result: simulated };
}

/** The feed's own word for the evidence, where it has one, compared with what the other findings leave. */
function publishedEvidence(record: AttestationRecord, findings: readonly Finding[]): Finding[] {
  const { enclave_evidence: published } = record;
  if (published === undefined) return [];
  const how = 'Certified: a certificate chain of the maker is bound to the key. Claimed: only the machine says so. Simulated: neither.';
  return [compared('enclave_evidence', published, enclaveEvidenceOf(record, findings), how)];
}

function readFeed(downloaded: unknown): AttestationFeed {
  if (feedValidator.Check(downloaded)) return downloaded as AttestationFeed;
  const [first] = feedValidator.Errors(downloaded);
  throw new FeedError(`This is no attestation feed: ${first?.instancePath || '/'} ${first?.message ?? 'is not valid'}.`);
}

/** The pinned anchor, whatever the feed says, unless the feed says that its own is a simulation. */
function anchorOf({ trust_anchor: published }: AttestationFeed): ActiveTrustAnchor {
  if (!published.simulated) return MAKER;
  try {
    return { anchor: { name: fromBase64(published.name), publicKey: fromBase64(published.public_key) }, simulated: true };
  } catch {
    throw new FeedError('The simulated anchor is not in canonical base64.');
  }
}
