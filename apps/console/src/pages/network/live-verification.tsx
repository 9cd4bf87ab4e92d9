/**
 * `LiveVerification`: card of the home page that verifies the attestation record of one machine when the page opens. The public record
 * contains the machine's signed answer to its newest challenge.
 */
import type { ProviderSnapshot } from '@inference/formats';
import { useEffect } from 'react';
import { Link } from 'wouter';
import { MachineVerdictBadge } from '../../features/trust/verdict-badge.js';
import { PATHS, pathWithId } from '../../routing/paths.js';
import { formatCount, Time } from '../../ui/display/figures.js';
import { Card } from '../../ui/display/page.js';
import { ErrorNote, Loaded } from '../../ui/feedback/error-state.js';
import { Note, Progress } from '../../ui/feedback/note.js';
import { EmptyState } from '../../ui/feedback/placeholders.js';
import { downloadFeed, useStats } from './queries.js';
import { outcomeOf } from './verify/record-findings.js';
import { type RecordProgress, useVerification, type Verification } from './verify/use-verification.js';

export function LiveVerification() {
  const stats = useStats();
  const machine = stats.data === undefined ? undefined : machineToVerify(stats.data.providers);
  return (
    <Card
      title="Verified live"
      about="Your browser checks the newest signed answer of a machine to a challenge of this network, now. The record is public and contains no requests or responses."
    >
      <div className="live-record">
        <Loaded query={stats} subject="The network">
          {machine === undefined ? (
            <Progress label="Looking for a machine…" />
          ) : machine === null ? (
            <EmptyState title="No machine is connected">Records are public while machines are connected.</EmptyState>
          ) : (
            <Machine key={machine.id} machine={machine} />
          )}
        </Loaded>
      </div>
    </Card>
  );
}

/** Prefers online machines, then trust level hardware, then the most requests. Null: none is connected. */
export function machineToVerify(providers: readonly ProviderSnapshot[]): ProviderSnapshot | null {
  const rank = ({ status, trust_level }: ProviderSnapshot): number => (status === 'online' ? 2 : 0) + (trust_level === 'hardware' ? 1 : 0);
  const [first] = providers.toSorted(
    (one, other) => rank(other) - rank(one) || other.requests_served - one.requests_served || (one.id < other.id ? -1 : 1),
  );
  return first ?? null;
}

function Machine({ machine: { id, chip, memory_gb, trust_level } }: { readonly machine: ProviderSnapshot }) {
  const { verification, start } = useVerification();
  // biome-ignore lint/correctness/useExhaustiveDependencies: once per machine; `start` differs at each render
  useEffect(() => void start(() => downloadFeed(id)), [id]);
  const [progress] = verification.state === 'running' || verification.state === 'done' ? verification.records : [];
  const answeredAt = progress?.record.last_challenge?.answered_at;
  return (
    <div className="stack-small">
      <p className="row">
        <strong>
          {chip}, {formatCount(memory_gb)} GB
        </strong>
        <MachineVerdictBadge trustLevel={trust_level} simulated={progress?.record.simulated ?? false} />
        <span className="muted">
          {answeredAt === undefined ? (
            'Reading the record…'
          ) : (
            <>
              Answered <Time at={answeredAt} />
            </>
          )}
        </span>
      </p>
      <Result verification={verification} progress={progress} />
      <p className="muted small">
        <Link href={pathWithId(PATHS.provider, id)}>See every check</Link> and what no check can prove.
      </p>
    </div>
  );
}

type Outcome = NonNullable<ReturnType<typeof outcomeOf>>;
const OUTCOMES: Readonly<Record<Outcome, { readonly tone: 'good' | 'warn' | 'bad'; readonly title: string }>> = {
  hardware: { tone: 'good', title: 'Passed: every claim that can be checked agrees with its evidence' },
  claimed: { tone: 'warn', title: 'The signatures are valid, but no Apple certificate proves the hardware' },
  simulated: { tone: 'warn', title: 'The signatures are valid, but this machine is a simulation' },
  failed: { tone: 'bad', title: 'Failed: the evidence contradicts this record' },
};

function Result({ verification, progress }: { readonly verification: Verification; readonly progress: RecordProgress | undefined }) {
  if (verification.state === 'failed') return <ErrorNote title="Verification failed." error={verification.error} />;
  if (verification.state === 'done' && progress === undefined) return <Note>The machine has disconnected.</Note>;
  const outcome = progress === undefined ? null : outcomeOf(progress);
  if (progress === undefined || outcome === null) return <Progress label="Verifying in your browser…" />;
  const findings = progress.verdict?.findings ?? [];
  const countOf = (...results: readonly string[]): string => formatCount(findings.filter(({ result }) => results.includes(result)).length);
  return (
    <Note {...OUTCOMES[outcome]}>
      <p role="status">
        {countOf('reproduced', 'simulated')} claims recomputed from their evidence, {countOf('word')} stated only by the coordinator,{' '}
        {countOf('contradicted')} contradicted.
      </p>
    </Note>
  );
}
