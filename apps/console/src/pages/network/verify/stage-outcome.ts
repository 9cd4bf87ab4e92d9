/** `stageOutcome`: result of one verification stage as label, colour and number of checks. */
import type { Finding, VerificationStage } from '@inference/verifier';
import { RESULT_LABELS, STEP_LABELS, TRUST_LEVELS } from '../../../features/trust/labels.js';
import { pluralize } from '../../../ui/display/figures.js';
import type { Tone } from '../../../ui/feedback/note.js';

interface StageOutcome {
  readonly label: string;
  readonly tone: Tone;
  /** Such as "7 checks, all passed". */
  readonly countLabel: string;
  readonly isFailed: boolean;
}

/** Replaces green by blue unless the record claims a certificate under Apple's root: green stands for hardware that Apple certified. */
export function passedTone(tone: Tone, claimsAppleCertificate: boolean): Tone {
  return tone === 'good' && !claimsAppleCertificate ? 'accent' : tone;
}

export function stageOutcome(stage: VerificationStage, findings: readonly Finding[], claimsAppleCertificate: boolean): StageOutcome {
  const has = (result: Finding['result']): boolean => findings.some((finding) => finding.result === result);
  const outcome = ({ label, tone }: { readonly label: string; readonly tone: Tone }): StageOutcome => ({
    label,
    tone: passedTone(tone, claimsAppleCertificate),
    countLabel: countText(findings),
    isFailed: false,
  });
  if (has('contradicted')) return { ...outcome(STEP_LABELS.failed), isFailed: true };
  // Without any claim, all values are false and agree with the evidence, but nothing was proved. Key findings always count as claims.
  const isClaimed = stage === 'enclave_key' || findings.some(({ value }) => value !== false);
  if (!isClaimed) return { ...outcome(STEP_LABELS.not_claimed), countLabel: pluralize(findings.length, 'check') };
  const level = findings.find(({ claim }) => claim === 'trust_level');
  if (level?.value === 'self_signed') return outcome({ ...TRUST_LEVELS.self_signed, tone: 'neutral' });
  if (has('simulated')) return outcome(RESULT_LABELS.simulated);
  if (level !== undefined) return outcome({ ...TRUST_LEVELS.hardware, tone: 'good' });
  return outcome(has('word') ? RESULT_LABELS.word : STEP_LABELS.passed);
}

function countText(findings: readonly Finding[]): string {
  const failed = findings.filter(({ result }) => result === 'contradicted').length;
  const words = findings.filter(({ result }) => result === 'word').length;
  const total = pluralize(findings.length, 'check');
  if (failed > 0) return `${total}, ${failed} failed`;
  if (words === findings.length) return `${total}, without evidence`;
  return words === 0 ? `${total}, all passed` : `${total}, ${words} without evidence`;
}
