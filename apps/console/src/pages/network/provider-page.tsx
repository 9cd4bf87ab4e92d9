/** `/providers/:id`: facts, trust checks and attestation record of one provider, and verification of the record in the browser. */
import './network.css';
import type { AttestationFeed, AttestationRecord } from '@inference/protocol';
import { BadgeCheck, Download } from 'lucide-react';
import { useParams } from 'wouter';
import { LoadedPage } from '../../api/loaded-page.js';
import { STATE_LABELS, TRUST_LEVELS } from '../../features/trust/labels.js';
import { Legend } from '../../features/trust/legend.js';
import { VerdictBadge } from '../../features/trust/verdict-badge.js';
import { machineVerdict } from '../../features/trust/verdicts.js';
import { PATHS } from '../../routing/paths.js';
import { formatCount, formatRate, Time } from '../../ui/display/figures.js';
import { Card, Fact, Facts, PageHeader } from '../../ui/display/page.js';
import { downloadText } from '../../ui/download.js';
import { Note } from '../../ui/feedback/note.js';
import { EmptyState } from '../../ui/feedback/placeholders.js';
import { Button, LinkButton } from '../../ui/forms/button.js';
import { CopyField } from '../../ui/forms/copy-field.js';
import { ModesHint } from './modes-hint.js';
import { downloadFeed, useFeedOf, useStats } from './queries.js';
import { StatusBadge, shortId, statusText } from './status-badges.js';
import { PART_TEXTS, REASON_TEXTS } from './trust-texts.js';
import { CheckItem } from './verify/check-item.js';
import { useVerification } from './verify/use-verification.js';
import { VerificationView } from './verify/verification-view.js';

export function Page() {
  const { id = '' } = useParams();
  const notConnected = (
    <EmptyState title="This provider is not connected" level={1} action={<LinkButton href={PATHS.providers}>View providers</LinkButton>}>
      Records are published only while a provider is connected. Saved records can be checked under “Verify a response”.
    </EmptyState>
  );
  const page = (feed: AttestationFeed) => {
    const [record] = feed.providers;
    return record === undefined ? notConnected : <Provider record={record} feed={feed} />;
  };
  return <LoadedPage query={useFeedOf(id)} subject="This provider" notFound={notConnected} page={page} />;
}

function Provider({ record, feed }: { readonly record: AttestationRecord; readonly feed: AttestationFeed }) {
  const { provider_id: id } = record;
  return (
    <>
      <PageHeader
        title={record.chip_name}
        about={
          <span className="row">
            <span>Provider {shortId(id)}</span>
            <StatusBadge status={record.status} />
            <VerdictBadge
              verdict={machineVerdict(record.trust_level, feed.trust_anchor.simulated ? 'simulated' : 'apple', record.simulated)}
            />
          </span>
        }
      />
      <div className="stack">
        {record.simulated ? (
          <Note tone="warn" title="This is a simulation">
            This provider stores its key in software, for tests and demonstrations. Nothing on this page is evidence about a real machine.
          </Note>
        ) : null}
        <Verify id={id} />
        <div className="columns">
          <Card title="The machine" about="As signed by the machine, with measurements of this coordinator.">
            <RecordFacts record={record} />
          </Card>
          <Card title="Trust checks" about={TRUST_LEVELS[record.trust_level].meaning}>
            <TrustParts record={record} />
            <Legend topics={['verdicts', 'states', 'levels']} />
          </Card>
        </div>
        <RawRecord feed={feed} id={id} />
      </div>
    </>
  );
}

function Verify({ id }: { readonly id: string }) {
  const { verification, start } = useVerification();
  const busy = verification.state === 'opening' || verification.state === 'running';
  return (
    <Card
      title="Verify in this browser"
      about="Downloads the record of this provider and recomputes its claims from the evidence, in your browser."
      actions={
        <Button
          kind="primary"
          busy={busy}
          icon={<BadgeCheck size={18} aria-hidden="true" />}
          onClick={() => void start(() => downloadFeed(id))}
        >
          {verification.state === 'idle' ? 'Verify' : 'Verify again'}
        </Button>
      }
    >
      <div className="stack-small">
        {verification.state === 'idle' ? (
          <p className="muted">
            The result shows what the enclave key signed, what Apple certified, what only the coordinator states, and what nobody can prove.
          </p>
        ) : (
          <VerificationView verification={verification} />
        )}
        <ModesHint />
      </div>
    </Card>
  );
}

function RecordFacts({ record }: { readonly record: AttestationRecord }) {
  const live = useStats().data?.providers.find(({ id }) => id === record.provider_id);
  return (
    <div className="stack-small">
      <Facts>
        <Fact label="State">{statusText(record.status).meaning}</Fact>
        <Fact label="Model">{record.hardware_model}</Fact>
        <Fact label="Memory">{formatCount(record.memory_gb)} GB</Fact>
        <Fact label="GPU cores">{formatCount(record.gpu_cores)}</Fact>
        <Fact label="Serial number">
          <code>{record.serial_number}</code>
        </Fact>
        <Fact label="Serves">{record.models.length === 0 ? 'no models' : record.models.join(', ')}</Fact>
        <Fact label="Tokens per second">
          {live === undefined || live.decode_tps === 0 ? 'not measured yet' : `${formatRate(live.decode_tps)}, as measured`}
        </Fact>
        <Fact label="Requests served">{live === undefined ? 'unknown' : formatCount(live.requests_served)}</Fact>
        <Fact label="Last challenge">
          {record.last_challenge === null ? 'none answered yet' : <Time at={record.last_challenge.answered_at} />}
        </Fact>
      </Facts>
      <CopyField label="Provider ID" value={record.provider_id} />
      <CopyField label="Public key" value={record.se_public_key} />
    </div>
  );
}

/** Replaces "Passed" for a simulated machine, whose checks prove nothing. */
const SIMULATED = { label: 'Simulated', tone: 'warn' } as const;

function TrustParts({ record }: { readonly record: AttestationRecord }) {
  return (
    <ul className="check-list">
      {record.trust_parts.map(({ part, state, reason }) => {
        const { label, meaning } = PART_TEXTS[part];
        const result = record.simulated && state === 'ok' ? SIMULATED : STATE_LABELS[state];
        return (
          <CheckItem key={part} name={label} tone={result.tone} result={result.label}>
            {meaning} {reason === null ? null : <strong>{REASON_TEXTS[reason]}</strong>}
          </CheckItem>
        );
      })}
    </ul>
  );
}

function RawRecord({ feed, id }: { readonly feed: AttestationFeed; readonly id: string }) {
  const text = JSON.stringify(feed, null, 2);
  return (
    <Card
      title="Attestation record"
      about="The downloaded record with its statements, signatures and certificates."
      actions={
        <Button
          icon={<Download size={16} aria-hidden="true" />}
          onClick={() => downloadText(`provider-${id}.json`, text, 'application/json')}
        >
          Save
        </Button>
      }
    >
      <details>
        <summary>Show record</summary>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard (WCAG 2.1.1) */}
        <pre className="raw-record" tabIndex={0}>
          {text}
        </pre>
      </details>
    </Card>
  );
}
