/** `VerificationView`: progress and result of verified attestation records. Shows one record in full, several as an expandable list. */
import { Legend } from '../../../features/trust/legend.js';
import { VerdictBadge } from '../../../features/trust/verdict-badge.js';
import { formatCount } from '../../../ui/display/figures.js';
import { Badge } from '../../../ui/display/page.js';
import { ErrorNote } from '../../../ui/feedback/error-state.js';
import { Note, Progress } from '../../../ui/feedback/note.js';
import { InputError } from './read-input.js';
import { outcomeOf, RecordFindings } from './record-findings.js';
import type { RecordProgress, Verification } from './use-verification.js';

export function VerificationView({ verification }: { readonly verification: Verification }) {
  switch (verification.state) {
    case 'idle':
      return null;
    case 'opening':
      return <Progress label="Loading the record and the verifier…" />;
    case 'failed':
      return (
        <ErrorNote
          title={verification.error instanceof InputError ? 'Not an attestation record.' : 'Verification failed.'}
          error={verification.error}
        />
      );
    default:
      return <Findings {...verification} />;
  }
}

function Findings({ anchor, records, total }: Extract<Verification, { readonly state: 'running' | 'done' }>) {
  const [only] = records;
  if (only === undefined) return <Note>This feed has no record: no provider was connected, or not this one.</Note>;
  return (
    <div className="stack">
      <p className="muted small">
        {anchor.kind === 'apple' ? (
          <>Certificates are verified to “{anchor.name}”, Apple's root, whose key is pinned in this page.</>
        ) : (
          <>
            Certificates are verified to “{anchor.name}”, a <strong>simulated</strong> root that the feed itself names.
          </>
        )}
      </p>
      {records.length === 1 ? <RecordFindings progress={only} /> : <Several records={records} total={total} />}
      <NotProved />
      <Legend topics={['steps', 'results', 'levels', 'evidence', 'verdicts']} />
    </div>
  );
}

function Several({ records, total }: { readonly records: readonly RecordProgress[]; readonly total: number }) {
  const done = records.filter(({ verdict }) => verdict !== null);
  const failed = done.filter((one) => outcomeOf(one) === 'failed').length;
  return (
    <div className="stack-small">
      <p role="status">
        {formatCount(done.length)} of {formatCount(records.length)} records checked, {formatCount(failed)} failed.
        {total > records.length
          ? ` The other ${formatCount(total - records.length)} are left to the command line: inference-verify network.`
          : ''}
      </p>
      {records.map((progress) => {
        const outcome = outcomeOf(progress);
        return (
          <details key={progress.record.provider_id} className="record-details">
            <summary>
              <span className="provider-id">{progress.record.provider_id}</span> {progress.record.chip_name}{' '}
              {outcome === null ? <Badge>Waiting</Badge> : <VerdictBadge verdict={outcome} />}
            </summary>
            <RecordFindings progress={progress} />
          </details>
        );
      })}
    </div>
  );
}

function NotProved() {
  return (
    <section className="stack-small not-proved">
      <h3>What this does not prove</h3>
      <ul className="plain-list">
        <li>That the enclave key is in the attested machine: its holder could relay the attestation of another machine.</li>
        <li>Which program runs on the machine, and what that program does with a prompt.</li>
        <li>The device management cross-check, and that challenges were fresh: only the coordinator states both.</li>
        <li>That certificates are not revoked: Apple publishes no revocation for them.</li>
        <li>At trust level “self-signed”, anything about the machine beyond its own statements.</li>
        <li>What the coordinator does with requests and responses, which pass through its memory.</li>
      </ul>
      <p className="muted small">
        The coordinator also served this page. To avoid trusting it, run the same verifier from your own copy:{' '}
        <code>inference-verify network</code> with this URL.
      </p>
    </section>
  );
}
