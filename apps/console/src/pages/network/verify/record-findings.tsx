/** `RecordFindings`: shows the verification of one record: progress or the overall result, and below it the finished stages. */
import type { ChainStep, DeviceChainVerdict, Finding, StageVerdict, VerificationStage } from '@inference/verifier';
import { RESULT_LABELS } from '../../../features/trust/labels.js';
import { VerdictBadge } from '../../../features/trust/verdict-badge.js';
import { VERDICT_OF_EVIDENCE } from '../../../features/trust/verdicts.js';
import { Badge } from '../../../ui/display/page.js';
import { Note, Progress } from '../../../ui/feedback/note.js';
import { sentenceCase } from '../status-badges.js';
import { CheckItem } from './check-item.js';
import { passedTone, stageOutcome } from './stage-outcome.js';
import type { RecordProgress } from './use-verification.js';

/** Length of `VERIFICATION_STAGES` in the verifier package, which is loaded only on first use. */
const STAGE_COUNT = 4;

export function RecordFindings({ progress }: { readonly progress: RecordProgress }) {
  const { record, anchor, stages, verdict } = progress;
  // `mda_verified`: the record claims Apple's Managed Device Attestation.
  const claimsAppleCertificate = record.mda_verified && !record.simulated && anchor === 'apple';
  return (
    <div>
      {verdict === null ? (
        <Progress
          label={`Checking, step ${Math.min(STAGE_COUNT, stages.length + 1)} of ${STAGE_COUNT}…`}
          value={stages.length / STAGE_COUNT}
        />
      ) : (
        <Outcome progress={progress} />
      )}
      <div className="stages">
        {stages.map((stage) => (
          <Stage key={stage.stage} stage={stage} claimsAppleCertificate={claimsAppleCertificate} />
        ))}
      </div>
    </div>
  );
}

/** Overall result of a record. Null until all stages are done. */
export function outcomeOf({ record, verdict }: RecordProgress): 'failed' | 'simulated' | 'claimed' | 'hardware' | null {
  if (verdict === null) return null;
  if (!verdict.consistent) return 'failed';
  if (record.simulated || verdict.findings.some(({ result }) => result === 'simulated')) return 'simulated';
  // The evidence for the Secure Enclave decides between the remaining results.
  return VERDICT_OF_EVIDENCE[verdict.enclave];
}

function Outcome({ progress }: { readonly progress: RecordProgress }) {
  const findings = progress.verdict?.findings ?? [];
  const count = (result: Finding['result']): number => findings.filter((finding) => finding.result === result).length;
  // `word`: only the coordinator makes the claim, without evidence.
  const counts = `${count('reproduced')} claims reproduced, ${count('simulated')} simulated, ${count('word')} on the coordinator's word, ${count('contradicted')} contradicted.`;
  const outcome = outcomeOf(progress);
  if (outcome === null) return null;
  const { tone, title, advice } = OUTCOMES[outcome];
  return (
    <div className="stack-small">
      <div>
        <VerdictBadge verdict={outcome} />
      </div>
      <Note tone={tone} title={title}>
        <p role="status">
          {counts} {advice}
        </p>
      </Note>
    </div>
  );
}

const OUTCOMES = {
  failed: { tone: 'bad', title: 'Failed: the evidence contradicts this record', advice: 'Do not trust its claims.' },
  simulated: { tone: 'warn', title: 'The evidence agrees, but this is a simulation', advice: 'This proves nothing about a real machine.' },
  claimed: {
    tone: 'warn',
    title: 'Every claim that can be checked agrees with its evidence, but the hardware is not proved',
    advice: 'The machine claims a Secure Enclave, but no Apple certificate confirms it.',
  },
  hardware: { tone: 'good', title: 'Passed: every claim that can be checked agrees with its evidence', advice: '' },
} as const;

interface StageProps {
  readonly stage: StageVerdict;
  /** Whether passed checks are green; see `passedTone`. */
  readonly claimsAppleCertificate: boolean;
}

/** Initially expanded if a check failed. */
function Stage({ stage: { stage, findings, chain }, claimsAppleCertificate }: StageProps) {
  const { title, about } = STAGE_TEXTS[stage];
  const outcome = stageOutcome(stage, findings, claimsAppleCertificate);
  return (
    <details className="stage" open={outcome.isFailed}>
      <summary>
        <span className="stage-title">{title}</span> <Badge tone={outcome.tone}>{outcome.label}</Badge>{' '}
        <span className="stage-count">{outcome.countLabel}</span>
      </summary>
      <p className="stage-about">{about}</p>
      {chain === null ? null : <ChainSteps chain={chain} claimsAppleCertificate={claimsAppleCertificate} />}
      <ul className="check-list">
        {findings.map((finding) => (
          <CheckItem
            key={finding.claim}
            name={CLAIM_LABELS[finding.claim] ?? sentenceCase(finding.claim)}
            value={shownValue(finding)}
            tone={passedTone(RESULT_LABELS[finding.result].tone, claimsAppleCertificate)}
            result={RESULT_LABELS[finding.result].label}
          >
            {finding.explanation}
          </CheckItem>
        ))}
      </ul>
    </details>
  );
}

function shownValue({ value }: Finding): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return value.length > 40 ? `${value.slice(0, 24)}…` : value;
}

interface ChainStepsProps {
  readonly chain: DeviceChainVerdict;
  readonly claimsAppleCertificate: boolean;
}

function ChainSteps({ chain, claimsAppleCertificate }: ChainStepsProps) {
  const failedAt = chain.ok ? null : CHAIN_STEPS.find(({ step }) => !chain.steps.includes(step))?.step;
  return (
    <ol className="chain-steps" aria-label="Steps of certificate verification">
      {CHAIN_STEPS.map(({ step, label }) => {
        const passed = chain.steps.includes(step);
        const failed = step === failedAt;
        return (
          <li key={step}>
            <Badge tone={passed ? passedTone('good', claimsAppleCertificate) : failed ? 'bad' : 'neutral'}>
              {label}: {passed ? 'ok' : failed ? `refused, ${chain.ok ? '' : sentenceCase(chain.code).toLowerCase()}` : 'not reached'}
            </Badge>
          </li>
        );
      })}
    </ol>
  );
}

/** Key: claim. Claims without a label are shown by name. */
const CLAIM_LABELS: Readonly<Record<string, string>> = {
  provider_id: 'Provider ID',
  se_public_key: 'Enclave key',
  attestation_statement: 'Attestation statement',
  chip_name: 'Chip',
  hardware_model: 'Hardware model',
  serial_number: 'Serial number',
  memory_gb: 'Memory in GB',
  key_protection: 'Key protection',
  simulated: 'Simulated enclave',
  secure_enclave: 'Secure Enclave (claimed)',
  enclave_evidence: 'Evidence of the Secure Enclave',
  sip_enabled: 'System Integrity Protection',
  secure_boot_enabled: 'Secure boot',
  authenticated_root_enabled: 'Sealed system volume',
  attested: 'Answered the newest challenge',
  key_statement: 'Sealing key',
  mda_verified: 'Apple device attestation',
  mda_binding: 'Certificate bound to this key',
  mda_serial: 'Serial number in the certificate',
  mda_udid: 'Device identifier in the certificate',
  mda_os_version: 'OS version in the certificate',
  mda_sepos_version: 'Enclave OS version in the certificate',
  acme_verified: 'Apple attestation of the management key',
  mdm_verified: 'Device management cross-check',
  trust_level: 'Trust level',
};

const STAGE_TEXTS: Readonly<Record<VerificationStage, { readonly title: string; readonly about: string }>> = {
  enclave_key: { title: 'Key', about: 'Each statement is verified with the enclave key and compared with the record.' },
  certificate_chain: {
    title: 'Apple certificate',
    about: 'Certificates must chain to the root named above, and be bound to the enclave key.',
  },
  device_management: {
    title: 'Device management',
    about: 'Stated only by the coordinator: the evidence of device management cannot be published.',
  },
  trust_level: { title: 'Trust level', about: 'Hardware, if all evidence above supports the level. Otherwise self-signed.' },
};

/** Steps of certificate chain verification, in order. */
const CHAIN_STEPS: readonly { readonly step: ChainStep; readonly label: string }[] = [
  { step: 'encoding', label: 'Encoding' },
  { step: 'path', label: 'Signatures and dates' },
  { step: 'anchor', label: 'Pinned root' },
  { step: 'extensions', label: 'Extensions' },
  { step: 'device', label: 'Same machine' },
  { step: 'protections', label: 'Protections' },
  { step: 'freshness', label: 'Bound to the key' },
  { step: 'age', label: 'Age' },
];
