/** Verification result of a response: verified, failed or unknown. Opens the list of checks and their limits. */
import type { EnclaveEvidence } from '@inference/protocol';
import { Check, CircleHelp, ShieldAlert, ShieldCheck, X } from 'lucide-react';
import { useState } from 'react';
import { PATHS, pathWithId } from '../../../routing/paths.js';
import { Dialog } from '../../../ui/dialogs/dialog.js';
import { LinkButton } from '../../../ui/forms/button.js';
import type { ProviderFacts } from '../requests/provider-facts.js';
import { type AnswerCheck, NOT_PROVED, NOT_PROVED_OF_ENCLAVE } from './check-answer.js';

export function CheckMark({ check, provider }: { readonly check: AnswerCheck; readonly provider: ProviderFacts | null }) {
  const [open, setOpen] = useState(false);
  if (check.state === 'none') return null;
  if (check.state === 'checking') {
    return (
      <span className="check-mark" data-state="checking">
        <span className="spinner" aria-hidden="true" /> Checking…
      </span>
    );
  }
  return (
    <>
      <button
        type="button"
        className="check-mark"
        data-state={check.state}
        data-enclave={check.state === 'verified' ? check.enclave : undefined}
        onClick={() => setOpen(true)}
      >
        <MarkIcon state={check.state} />
        {WORDS[check.state]}
        {check.state === 'verified' ? <span className="check-detail">{`· ${ENCLAVE_LABELS[check.enclave]}`}</span> : null}
      </button>
      <Dialog open={open} onClose={() => setOpen(false)} title={TITLES[check.state]}>
        <Details check={check} provider={provider} />
      </Dialog>
    </>
  );
}

const WORDS = { verified: 'Verified', failed: 'FAILED', unknown: 'Not verified' } as const;
const ENCLAVE_LABELS = {
  simulated: 'simulated machine',
  claimed: 'hardware not proved',
  certified: 'certified hardware',
} as const satisfies Record<EnclaveEvidence, string>;

const TITLES = {
  verified: 'Response verified',
  failed: 'Verification failed',
  unknown: 'Not verified',
} as const;

function MarkIcon({ state }: { readonly state: 'verified' | 'failed' | 'unknown' }) {
  if (state === 'verified') return <ShieldCheck size={16} aria-hidden="true" />;
  if (state === 'failed') return <ShieldAlert size={16} aria-hidden="true" />;
  return <CircleHelp size={16} aria-hidden="true" />;
}

function Details({
  check,
  provider,
}: {
  readonly check: Exclude<AnswerCheck, { state: 'none' | 'checking' }>;
  readonly provider: ProviderFacts | null;
}) {
  const ofEnclave = check.state === 'verified' ? NOT_PROVED_OF_ENCLAVE[check.enclave] : null;
  const notProved = ofEnclave === null ? NOT_PROVED : [ofEnclave, ...NOT_PROVED];
  return (
    <div className="stack-small check-details">
      <p>{about(check)}</p>
      {check.state === 'unknown' ? null : (
        <>
          <h3>Checks in this browser</h3>
          <ul className="check-lines">
            {check.lines.map(({ ok, text }) => (
              <li key={text} data-ok={ok}>
                {ok ? <Check size={16} aria-hidden="true" /> : <X size={16} aria-hidden="true" />}
                <span>
                  <span className="visually-hidden">{ok ? 'Passed: ' : 'Failed: '}</span>
                  {text}
                </span>
              </li>
            ))}
          </ul>
        </>
      )}
      {check.state === 'failed' ? null : (
        <>
          <h3>What this does not prove</h3>
          <ul className="proof-limits">
            {notProved.map((text) => (
              <li key={text}>{text}</li>
            ))}
          </ul>
        </>
      )}
      {check.state !== 'unknown' && check.jobId !== null ? (
        <p className="field-hint">
          Request <code className="breakable">{check.jobId}</code>
        </p>
      ) : null}
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

function about(check: Exclude<AnswerCheck, { state: 'none' | 'checking' }>): string {
  switch (check.state) {
    case 'verified':
      return 'The received bytes match the signature of the machine for this request, made with the key in its attestation record.';
    case 'failed':
      return 'Do not rely on it: the response does not match the signature, or the machine does not match its record.';
    case 'unknown':
      return check.reason;
  }
}
