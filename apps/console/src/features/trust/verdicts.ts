/** `VERDICTS`: labels, colours and meanings of verdicts on a machine or an answer. `machineVerdict`: verdict from the coordinator's report. */
import type { EnclaveEvidence } from '@inference/protocol';
import type { Tone } from '../../ui/feedback/note.js';

export type Verdict = 'hardware' | 'simulated' | 'claimed' | 'self_signed' | 'hardware_unconfirmed' | 'untrusted' | 'failed' | 'unverified';

interface VerdictText {
  readonly label: string;
  /** `good` is reserved for hardware that Apple certified. */
  readonly tone: Tone;
  readonly meaning: string;
}

/** Part of verdicts that pages show after a verification in the browser and for reports of the coordinator. */
const WHO_VERIFIED = 'If a list of checks belongs to the badge, your browser verified this. Otherwise, only the coordinator did.';

export const VERDICTS: Readonly<Record<Verdict, VerdictText>> = {
  hardware: {
    label: 'Verified · Apple hardware',
    tone: 'good',
    meaning: `The signatures are valid, and a certificate chain up to Apple's root is bound to the key of the machine. ${WHO_VERIFIED}`,
  },
  simulated: {
    label: 'Verified · simulated machine',
    tone: 'warn',
    meaning: `The signatures are valid, but the key is stored in software or certified by a test authority. Nothing is proved about hardware. ${WHO_VERIFIED}`,
  },
  claimed: {
    label: 'Verified · hardware not proved',
    tone: 'warn',
    meaning: 'The signatures are valid. The machine claims a Secure Enclave, but no Apple certificate confirms it.',
  },
  self_signed: {
    label: 'Self-signed',
    tone: 'neutral',
    meaning:
      'The statements of the machine are signed only by its own key. Nobody else confirms them. The page of the machine says whether it is simulated.',
  },
  hardware_unconfirmed: {
    label: 'Level hardware · not verified here',
    tone: 'neutral',
    meaning: 'The coordinator reports trust level hardware, but this page could not find out whether the network is a simulation.',
  },
  untrusted: {
    label: 'Not trusted',
    tone: 'bad',
    meaning: 'The machine lacks something that every request requires, so it gets no requests.',
  },
  failed: { label: 'FAILED', tone: 'bad', meaning: 'A signature is invalid, or the evidence contradicts a claim. Do not rely on it.' },
  unverified: { label: 'Not verified', tone: 'warn', meaning: 'Evidence was missing, so nothing was proved and nothing contradicted.' },
};

/** Root of the network's certificate chains. `unknown`: the attestation feed, which names the root, could not be read. */
export type AnchorKind = 'apple' | 'simulated' | 'unknown';

/**
 * Verdict on a machine from the coordinator's report, without any verification.
 *
 * @param simulated Whether the machine's enclave is simulated. False also if the API does not say so. At level `hardware`, `anchor` then
 *   decides: the coordinator grants this level only if enclave and certificates are both simulated or both real.
 */
export function machineVerdict(trustLevel: string | null, anchor: AnchorKind, simulated = false): Verdict {
  if (trustLevel === null || trustLevel === 'none') return 'untrusted';
  if (simulated) return 'simulated';
  if (trustLevel !== 'hardware') return 'self_signed';
  return anchor === 'apple' ? 'hardware' : anchor === 'simulated' ? 'simulated' : 'hardware_unconfirmed';
}

/** Verdict on an answer or record that the browser verified. Key: evidence for the machine's Secure Enclave. */
export const VERDICT_OF_EVIDENCE = {
  certified: 'hardware',
  claimed: 'claimed',
  simulated: 'simulated',
} as const satisfies Record<EnclaveEvidence, Verdict>;
