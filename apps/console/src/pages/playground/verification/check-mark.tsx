/** `CheckMark`: badge with the verification result of a response. Opens a report with machine, checks and remaining limits. */
import { useState } from 'react';
import { Link } from 'wouter';
import { answerLimits } from '../../../features/trust/answer-limits.js';
import { AnswerReport, type AnswerReportProps } from '../../../features/trust/answer-report.js';
import { TRUST_LEVELS } from '../../../features/trust/labels.js';
import { VerdictBadge } from '../../../features/trust/verdict-badge.js';
import { VERDICT_OF_EVIDENCE, type Verdict } from '../../../features/trust/verdicts.js';
import { PATHS, pathWithId } from '../../../routing/paths.js';
import { Dialog } from '../../../ui/dialogs/dialog.js';
import { formatCount, Time } from '../../../ui/display/figures.js';
import { LinkButton } from '../../../ui/forms/button.js';
import type { ProviderFacts } from '../requests/provider-facts.js';
import type { AnswerCheck } from './check-answer.js';

type FinishedCheck = Exclude<AnswerCheck, { state: 'none' | 'checking' }>;

interface CheckMarkProps<Check> {
  readonly check: Check;
  readonly provider: ProviderFacts | null;
}

export function CheckMark({ check, provider }: CheckMarkProps<AnswerCheck>) {
  const [open, setOpen] = useState(false);
  if (check.state === 'none') return null;
  if (check.state === 'checking') {
    return (
      <span className="check-mark">
        <span className="spinner" aria-hidden="true" /> Checking…
      </span>
    );
  }
  return (
    <>
      <button type="button" className="check-mark" onClick={() => setOpen(true)}>
        <VerdictBadge verdict={verdictOf(check)} />
      </button>
      <Dialog open={open} onClose={() => setOpen(false)} title={TITLES[check.state]}>
        <Details check={check} provider={provider} />
      </Dialog>
    </>
  );
}

const TITLES = { verified: 'Response verified', failed: 'Verification failed', unknown: 'Not verified' } as const;

function verdictOf(check: FinishedCheck): Verdict {
  if (check.state === 'verified') return VERDICT_OF_EVIDENCE[check.enclave];
  return check.state === 'failed' ? 'failed' : 'unverified';
}

function Details({ check, provider }: CheckMarkProps<FinishedCheck>) {
  return (
    <div className="stack-small">
      <AnswerReport
        verdict={verdictOf(check)}
        about={about(check)}
        facts={factsOf(check, provider)}
        lines={check.state === 'unknown' ? [] : check.lines}
        notProved={check.state === 'failed' ? [] : answerLimits(check.state === 'verified' ? check.enclave : null)}
      />
      <div className="row">
        {provider === null ? null : (
          <LinkButton href={pathWithId(PATHS.provider, provider.id)} kind="secondary" size="small">
            View attestation record
          </LinkButton>
        )}
        <LinkButton href={PATHS.modes} kind="quiet" size="small">
          Who sees what
        </LinkButton>
      </div>
    </div>
  );
}

/** Facts from the headers of the response, and from its receipt if the receipt's signature is valid. */
function factsOf(check: FinishedCheck, provider: ProviderFacts | null): AnswerReportProps['facts'] {
  if (provider === null) return [];
  const { jobId = null, receipt = null } = check.state === 'unknown' ? {} : check;
  const { hardware, self_signed } = TRUST_LEVELS;
  const level = provider.trustLevel === 'hardware' ? hardware : self_signed;
  const isSimulated = check.state === 'verified' && check.enclave === 'simulated';
  return [
    { label: 'Machine', value: isSimulated ? `${provider.chip} (simulated)` : provider.chip },
    {
      label: 'Provider',
      value: (
        <Link href={pathWithId(PATHS.provider, provider.id)} className="breakable">
          {provider.id}
        </Link>
      ),
    },
    { label: 'Trust level', value: isSimulated ? `${level.label}, simulated` : level.label },
    ...(receipt === null
      ? []
      : [
          { label: 'Model', value: receipt.model },
          {
            label: 'Tokens',
            value: `${formatCount(receipt.usage.prompt)} input, ${formatCount(receipt.usage.completion)} output`,
          },
          { label: 'Completed', value: <Time at={receipt.completedAt} as="date-time" /> },
        ]),
    ...(jobId === null ? [] : [{ label: 'Request', value: <code className="breakable">{jobId}</code> }]),
  ];
}

function about(check: FinishedCheck): string {
  switch (check.state) {
    case 'verified':
      return 'The received bytes match the signature of the machine for this request, made with the key in its attestation record.';
    case 'failed':
      return 'Do not rely on it: the response does not match the signature, or the machine does not match its record.';
    case 'unknown':
      return check.reason;
  }
}
