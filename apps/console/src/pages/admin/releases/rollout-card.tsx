/** `RolloutCard`: state, stage and progress of one rollout, with actions for operators. Part of the releases page. */
import type { AdminRollout, RolloutAct, RolloutComparison, RolloutState } from '@inference/formats';
import { useState } from 'react';
import { api } from '../../../api/api-client.js';
import { ConfirmDialog } from '../../../ui/dialogs/dialog.js';
import { Count, formatShare, pluralize, Time } from '../../../ui/display/figures.js';
import { Badge, Card, Fact, Facts } from '../../../ui/display/page.js';
import { type Column, Table } from '../../../ui/display/table.js';
import { Note, Progress } from '../../../ui/feedback/note.js';
import { Button } from '../../../ui/forms/button.js';
import { rolloutPath, useToastAndRefetch } from '../queries.js';
import { ACTS, actsOf, COMPARISON_RESULTS, cohortText, MEASURES, STATES, sideText } from './rollout-texts.js';

interface RolloutCardProps {
  readonly rollout: AdminRollout;
  /** Share of the connected machines that run the version, from 0 to 1. */
  readonly share: number;
}

export function RolloutCard({ rollout, share }: RolloutCardProps) {
  const { version, state, published, urgent, reason, waiting_for, comparisons, checked_at } = rollout;
  const { label, tone } = STATES[state];
  return (
    <Card title={`Version ${version}`} actions={<RolloutActs rollout={rollout} />}>
      <div className="stack-small">
        <p>
          <Badge tone={tone}>{label}</Badge> {urgent ? <Badge tone="warn">Urgent</Badge> : null}{' '}
          {published ? null : <Badge>Not in the release file</Badge>}
        </p>
        {state === 'halted' ? (
          <Note tone="bad" title="No machine is offered this version">
            <p>{reason}</p>
          </Note>
        ) : null}
        {state === 'paused' ? (
          <Note tone="warn" title="No machine is offered this version">
            <p>{reason ?? 'An operator paused the rollout.'}</p>
          </Note>
        ) : null}
        {state === 'active' ? <Progress label={`${formatShare(share)} of the connected machines run ${version}`} value={share} /> : null}
        <RolloutFacts rollout={rollout} />
        {state === 'active' && waiting_for !== null ? <p>Next: {waiting_for}</p> : null}
        {comparisons.length === 0 ? null : (
          <Table
            caption={`Updated machines and others, version ${version}`}
            columns={COLUMNS}
            rows={comparisons}
            rowKey={(row) => `${row.measure} ${row.cohort?.kind ?? ''} ${row.cohort?.name ?? ''}`}
            empty={null}
            stacked
          />
        )}
        {checked_at === null ? null : (
          <p className="card-about">
            Last check <Time at={checked_at} />. The network repeats the check every minute.
          </p>
        )}
      </div>
    </Card>
  );
}

/** Label for `ended_at`, the time at which the rollout reached its state. */
const END_LABELS: Readonly<Record<RolloutState, string>> = { active: 'Ended', paused: 'Paused', halted: 'Halted', complete: 'Completed' };

function RolloutFacts({ rollout }: { readonly rollout: AdminRollout }) {
  const { state, stage, stages, percent, stage_started_at, started_at, ended_at, machines } = rollout;
  return (
    <Facts>
      {state === 'complete' ? null : (
        <Fact label="Stage">
          {stage} of {stages}, {percent}% of machines, since <Time at={stage_started_at} as="date-time" />
        </Fact>
      )}
      <Fact label="Started">
        <Time at={started_at} as="date-time" />
      </Fact>
      {ended_at === null ? null : (
        <Fact label={END_LABELS[state]}>
          <Time at={ended_at} as="date-time" />
        </Fact>
      )}
      <Fact label="Updated">
        {pluralize(machines.settled, 'machine')} of {machines.offered} offered
      </Fact>
      <Fact label="Updating now">
        <Count value={machines.updating} />
        {machines.missing === 0 ? null : `; ${machines.missing} did not come back`}
      </Fact>
    </Facts>
  );
}

const BUTTON_KINDS: Readonly<Partial<Record<RolloutAct, 'primary' | 'danger'>>> = { resume: 'primary', halt: 'danger' };

/** Buttons for the actions that the state permits, with a dialog to confirm each. */
function RolloutActs({ rollout }: { readonly rollout: AdminRollout }) {
  const [act, setAct] = useState<RolloutAct | null>(null);
  const toastAndRefetch = useToastAndRefetch();
  const { version } = rollout;
  return (
    <>
      {actsOf(rollout).map((permitted) => (
        <Button
          key={permitted}
          size="small"
          kind={BUTTON_KINDS[permitted] ?? 'secondary'}
          onClick={() => setAct(permitted)}
          aria-label={`${ACTS[permitted].button}: ${version}`}
        >
          {ACTS[permitted].button}
        </Button>
      ))}
      {act === null ? null : (
        <ConfirmDialog
          onClose={() => setAct(null)}
          title={ACTS[act].title(version)}
          confirm={ACTS[act].button}
          errorTitle={ACTS[act].error}
          onConfirm={async () => {
            await api.post(`${rolloutPath(version)}/${act}`, {});
            await toastAndRefetch(ACTS[act].done);
          }}
        >
          <p>{ACTS[act].text}</p>
        </ConfirmDialog>
      )}
    </>
  );
}

const COLUMNS: readonly Column<RolloutComparison>[] = [
  { key: 'measure', header: 'Measure', rowHeader: true, cell: ({ measure }) => MEASURES[measure] },
  { key: 'cohort', header: 'Among', cell: (row) => <span className="breakable">{cohortText(row)}</span> },
  { key: 'updated', header: 'Updated', numeric: true, cell: (row) => sideText(row, row.updated) },
  { key: 'others', header: 'Others', numeric: true, cell: (row) => sideText(row, row.others) },
  {
    key: 'verdict',
    header: 'Result',
    cell: ({ verdict }) => <Badge tone={COMPARISON_RESULTS[verdict].tone}>{COMPARISON_RESULTS[verdict].label}</Badge>,
  },
];
