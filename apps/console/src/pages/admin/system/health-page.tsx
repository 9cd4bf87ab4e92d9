/**
 * `/admin/health`: current state of the network, from `GET /admin/v1/health`, and charts of earlier figures.
 *
 * Jobs, machines and recent codes are sums over all coordinators. Readiness and process facts describe only the coordinator that responded.
 */
import type { AdminHealth } from '@inference/formats';
import type { ReactNode } from 'react';
import { humanizeCode } from '../../../features/machines/status-texts.js';
import { Count, formatUsd, pluralize, Time } from '../../../ui/display/figures.js';
import { Card, Fact, Facts, PageHeader, Stat, Stats } from '../../../ui/display/page.js';
import { type Column, Table } from '../../../ui/display/table.js';
import { Loaded } from '../../../ui/feedback/error-state.js';
import { Note } from '../../../ui/feedback/note.js';
import { useHealth } from '../queries.js';
import { HealthHistoryCard } from './health-history.js';

export function Page() {
  const health = useHealth();
  const { data } = health;
  return (
    <>
      <PageHeader
        title="Health"
        about="Requests, machines, database and charts cover all coordinators. Readiness and process are those of the coordinator that answered."
      />
      <div className="stack">
        <Loaded query={health} subject="The health of the coordinator" staleTitle="The information below is out of date.">
          <Readiness health={data} />
          <Figures health={data} />
          <HealthHistoryCard />
          <div className="columns">
            <LedgerCard health={data} />
            <ProcessCard health={data} />
          </div>
          <RecentCards health={data} />
        </Loaded>
      </div>
    </>
  );
}

interface HealthProps {
  /** Undefined while loading. */
  readonly health: AdminHealth | undefined;
}

const REASONS: Readonly<Record<string, string>> = {
  draining: 'Shutting down: running jobs finish, new requests are refused.',
  database_unreachable: 'The database did not answer within two seconds. Requests fail with “billing_unavailable”.',
  database_migrations_missing: 'The database lacks migrations of this version. Check whether an older backup was restored.',
  database_too_new: 'A newer coordinator has migrated the database. Upgrade this coordinator.',
};

function Readiness({ health }: HealthProps) {
  if (health === undefined) {
    return (
      <Note title="Loading">
        <p>Waiting for the coordinator.</p>
      </Note>
    );
  }
  if (health.ready && (health.ledger?.problems.length ?? 0) === 0) {
    return (
      <Note tone="good" title="Ready, and the ledger balances">
        <p>
          Version {health.version}, started <Time at={health.started_at} />.
        </p>
      </Note>
    );
  }
  return (
    <Note tone="bad" title={health.ready ? 'The ledger does not balance' : 'Not accepting requests'}>
      {health.ready ? (
        <p>See below, and run “inference-coordinator ledger-check” for a full check.</p>
      ) : (
        <p>{REASONS[health.reason ?? ''] ?? humanizeCode(health.reason ?? 'unknown')}</p>
      )}
    </Note>
  );
}

function Figures({ health }: HealthProps) {
  const figure = (read: (health: AdminHealth) => ReactNode): ReactNode | undefined => (health === undefined ? undefined : read(health));
  const hint = (read: (health: AdminHealth) => string): string => (health === undefined ? '…' : read(health));
  return (
    <Stats>
      <Stat
        label="Running jobs"
        value={figure(({ queues }) => <Count value={queues.running_jobs} />)}
        hint="on machines and in the queue"
      />
      <Stat
        label="Waiting requests"
        value={figure(({ queues }) => <Count value={queues.waiting_requests + queues.waiting_for_images} />)}
        hint={hint(({ queues }) => `${queues.waiting_for_images} for images`)}
      />
      <Stat
        label="Eligible machines"
        value={figure(({ fleet }) => (
          <>
            <Count value={fleet.routable} /> of <Count value={fleet.providers} />
          </>
        ))}
        hint={hint(({ fleet }) => `${fleet.held} quarantined, ${fleet.restrained} restricted`)}
      />
      <Stat
        label="Slots in use"
        value={figure(({ fleet }) => (
          <>
            <Count value={fleet.used_slots} /> of <Count value={fleet.slots} />
          </>
        ))}
        hint={hint(({ fleet }) => pluralize(fleet.models, 'model'))}
      />
    </Stats>
  );
}

function LedgerCard({ health }: HealthProps) {
  const ledger = health?.ledger;
  return (
    <Card
      title="Ledger"
      about={
        ledger ? (
          <>
            Short check <Time at={ledger.checked_at} />
          </>
        ) : (
          'Short check'
        )
      }
    >
      <div className="stack-small">
        {ledger === null ? <Note tone="bad">The database did not answer.</Note> : null}
        {ledger?.problems.map((problem) => (
          <Note key={problem} tone="bad">
            {problem}
          </Note>
        ))}
        <Facts>
          <Fact label="Owed to accounts and machines">
            {ledger && `${formatUsd(ledger.owed_micro_usd)} in ${pluralize(ledger.accounts, 'balance')}`}
          </Fact>
          <Fact label="Reserved for running jobs">
            {ledger && `${formatUsd(ledger.held_micro_usd)} in ${pluralize(ledger.running_holds, 'reservation')}`}
          </Fact>
          <Fact label="Requested withdrawals">{ledger && formatUsd(ledger.requested_withdrawals_micro_usd)}</Fact>
          <Fact label="Network fees">{ledger && formatUsd(ledger.fees_micro_usd)}</Fact>
        </Facts>
      </div>
    </Card>
  );
}

function ProcessCard({ health }: HealthProps) {
  return (
    <Card title="Process and database" about="Version, start and memory of the coordinator that answered">
      <Facts>
        <Fact label="Version">{health && `${health.version}, Node ${health.node_version.replace(/^v/, '')}`}</Fact>
        <Fact label="Started">{health && <Time at={health.started_at} as="date-time" />}</Fact>
        <Fact label="Memory">{health && formatMemory(health.memory_bytes)}</Fact>
        <Fact label="Request bodies">
          {health && `${formatMemory(health.queues.held_request_bytes)} of ${formatMemory(health.queues.most_held_request_bytes)}`}
        </Fact>
        <Fact label="Database">{health && databaseText(health.database)}</Fact>
        <Fact label="Machine connections">{health && <Count value={health.fleet.connections} />}</Fact>
      </Facts>
    </Card>
  );
}

function databaseText({ kind, state, answer_ms }: AdminHealth['database']): string {
  return [kind === 'sqlite' ? 'SQLite' : 'PostgreSQL', humanizeCode(state), `answered in ${answer_ms} ms`].join(', ');
}

type CodeCount = AdminHealth['recent']['jobs'][number];

function RecentCards({ health }: HealthProps) {
  const minutes = health?.recent.minutes ?? 60;
  return (
    <div className="columns">
      <Card title={`Job results, last ${minutes} minutes`} flush>
        <Table
          caption={`Job results in the last ${minutes} minutes`}
          columns={columns('Result')}
          rows={health?.recent.jobs}
          rowKey={({ code }) => code}
          loadingRows={1}
          empty={<p className="card-empty">No jobs ended in this period.</p>}
        />
      </Card>
      <Card title={`Problems, last ${minutes} minutes`} flush>
        <Table
          caption={`Problems in the last ${minutes} minutes`}
          columns={columns('Problem')}
          rows={health?.recent.problems}
          rowKey={({ code }) => code}
          loadingRows={1}
          empty={<p className="card-empty">No failed attempts, closed connections or ledger errors.</p>}
        />
      </Card>
    </div>
  );
}

function columns(header: string): readonly Column<CodeCount>[] {
  return [
    { key: 'code', header, rowHeader: true, cell: ({ code }) => codeText(code) },
    { key: 'count', header: 'Times', numeric: true, cell: ({ count }) => <Count value={count} /> },
  ];
}

const PROBLEMS: Readonly<Record<string, string>> = {
  attempt_failed: 'Failed attempt',
  provider_ended: 'Connection closed by the coordinator',
  ledger_failed: 'Ledger error',
};

/** Text for a code of the form `kind` or `kind:reason`. */
function codeText(code: string): string {
  const [what = '', why] = code.split(':', 2);
  return why === undefined ? humanizeCode(what) : `${PROBLEMS[what] ?? humanizeCode(what)}: ${humanizeCode(why)}`;
}

/** Formats bytes in MiB, labelled MB. */
function formatMemory(bytes: number): string {
  return `${(bytes / 1_048_576).toFixed(bytes < 10_485_760 ? 1 : 0)} MB`;
}
