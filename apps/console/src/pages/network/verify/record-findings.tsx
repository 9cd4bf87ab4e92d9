/** Findings of one record by stage, while verification runs, and the overall result. */
import type { DeviceChainVerdict, Finding, StageVerdict } from '@inference/verifier';
import { Badge } from '../../../ui/display/page.js';
import { Note, Progress } from '../../../ui/feedback/note.js';
import { sentenceCase } from '../status-badges.js';
import { CheckItem } from './check-item.js';
import { CHAIN_STEPS, CLAIM_LABELS, RESULT_LABELS, STAGE_TEXTS } from './claim-texts.js';
import type { RecordProgress } from './use-verification.js';

const STAGES = 4;

export function RecordFindings({ progress }: { readonly progress: RecordProgress }) {
  const { stages, verdict } = progress;
  return (
    <div>
      {verdict === null ? (
        <Progress label={`Checking, step ${Math.min(STAGES, stages.length + 1)} of ${STAGES}…`} value={stages.length / STAGES} />
      ) : (
        <Outcome progress={progress} />
      )}
      {stages.map((stage) => (
        <Stage key={stage.stage} stage={stage} />
      ))}
    </div>
  );
}

export type OutcomeKind = 'contradicted' | 'simulated' | 'claimed' | 'consistent';

export function outcomeOf({ record, verdict }: RecordProgress): OutcomeKind | null {
  if (verdict === null) return null;
  if (!verdict.consistent) return 'contradicted';
  if (record.simulated || verdict.findings.some(({ result }) => result === 'simulated')) return 'simulated';
  return verdict.enclave === 'certified' ? 'consistent' : 'claimed';
}

function Outcome({ progress }: { readonly progress: RecordProgress }) {
  const findings = progress.verdict?.findings ?? [];
  const count = (result: Finding['result']): number => findings.filter((finding) => finding.result === result).length;
  const counts = `${count('reproduced')} claims reproduced, ${count('simulated')} simulated, ${count('word')} stated only by the coordinator, ${count('contradicted')} contradicted.`;
  switch (outcomeOf(progress)) {
    case 'contradicted':
      return (
        <Note tone="bad" title="Failed: the evidence contradicts this record">
          <p role="status">{counts} Do not trust its claims.</p>
        </Note>
      );
    case 'simulated':
      return (
        <Note tone="warn" title="The evidence agrees, but this is a simulation">
          <p role="status">{counts} This proves nothing about a real machine.</p>
        </Note>
      );
    case 'claimed':
      return (
        <Note tone="warn" title="Every claim that can be checked agrees with its evidence, but the hardware is not proved">
          <p role="status">{counts} The machine claims a Secure Enclave: no Apple certificate confirms it.</p>
        </Note>
      );
    default:
      return (
        <Note tone="good" title="Passed: every claim that can be checked agrees with its evidence">
          <p role="status">{counts}</p>
        </Note>
      );
  }
}

function Stage({ stage: { stage, findings, chain } }: { readonly stage: StageVerdict }) {
  const { title, about } = STAGE_TEXTS[stage];
  return (
    <section className="stage">
      <h3 className="stage-title">{title}</h3>
      <p className="stage-about">{about}</p>
      {chain === null ? null : <ChainSteps chain={chain} />}
      <ul className="check-list">
        {findings.map((finding) => (
          <CheckItem
            key={finding.claim}
            name={CLAIM_LABELS[finding.claim] ?? sentenceCase(finding.claim)}
            value={shownValue(finding)}
            tone={RESULT_LABELS[finding.result].tone}
            result={RESULT_LABELS[finding.result].label}
          >
            {finding.explanation}
          </CheckItem>
        ))}
      </ul>
    </section>
  );
}

function shownValue({ value }: Finding): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return value.length > 40 ? `${value.slice(0, 24)}…` : value;
}

function ChainSteps({ chain }: { readonly chain: DeviceChainVerdict }) {
  const failedAt = chain.ok ? null : CHAIN_STEPS.find(({ step }) => !chain.steps.includes(step))?.step;
  return (
    <ol className="chain-steps" aria-label="Steps of certificate verification">
      {CHAIN_STEPS.map(({ step, label }) => {
        const passed = chain.steps.includes(step);
        const failed = step === failedAt;
        return (
          <li key={step}>
            <Badge tone={passed ? 'good' : failed ? 'bad' : 'neutral'}>
              {label}: {passed ? 'ok' : failed ? `refused, ${chain.ok ? '' : sentenceCase(chain.code).toLowerCase()}` : 'not reached'}
            </Badge>
          </li>
        );
      })}
    </ol>
  );
}
