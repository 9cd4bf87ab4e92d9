/** `/admin/releases`: rollouts of agent versions, the share of machines on each version, and the rollout policy. */
import type { AdminRollout, AdminRolloutList, RolloutPolicy } from '@inference/formats';
import { Count, formatShare, pluralize, Time } from '../../../ui/display/figures.js';
import { Badge, Card, PageHeader } from '../../../ui/display/page.js';
import { type Column, Table } from '../../../ui/display/table.js';
import { Loaded } from '../../../ui/feedback/error-state.js';
import { Note } from '../../../ui/feedback/note.js';
import { EmptyState, Skeleton } from '../../../ui/feedback/placeholders.js';
import { useRollouts } from '../queries.js';
import { PolicyButton } from './policy-dialog.js';
import { RolloutCard } from './rollout-card.js';
import { STATES } from './rollout-texts.js';

type VersionShare = AdminRolloutList['fleet']['versions'][number];
type Stage = RolloutPolicy['stages'][number];

export function Page() {
  const rollouts = useRollouts();
  const { data } = rollouts;
  const current = data?.rollouts.filter(({ state }) => state !== 'complete') ?? [];
  const newest = current.length > 0 ? current : (data?.rollouts.slice(0, 1) ?? []);
  const shareOf = (version: string): number => data?.fleet.versions.find((entry) => entry.version === version)?.share ?? 0;
  return (
    <>
      <PageHeader
        title="Agent releases"
        about="New versions reach machines in stages. A version whose machines do worse than the others is halted automatically."
      />
      <Loaded query={rollouts} subject="The rollouts">
        {data === undefined ? (
          <Skeleton height="20rem" />
        ) : (
          <div className="stack">
            {newest.length === 0 ? (
              <Card>
                <EmptyState title="No releases">
                  Publish a version in the release file (AGENT_RELEASES). The version appears here within a minute.
                </EmptyState>
              </Card>
            ) : (
              newest.map((rollout) => <RolloutCard key={rollout.version} rollout={rollout} share={shareOf(rollout.version)} />)
            )}
            <Card title="Versions in use" about={`${pluralize(data.fleet.machines, 'connected machine')}, counted every minute`} flush>
              <Table
                caption="Versions of connected machines"
                columns={VERSIONS}
                rows={data.fleet.versions}
                rowKey={({ version }) => version}
                empty={<p className="card-empty">No machine is connected.</p>}
                stacked="compact"
              />
            </Card>
            <PolicyCard policy={data.policy} />
            <Card title="All rollouts" flush>
              <Table
                caption="Rollouts of agent versions"
                columns={ROLLOUTS}
                rows={data.rollouts}
                rowKey={({ version }) => version}
                empty={<p className="card-empty">No rollouts.</p>}
                stacked
              />
            </Card>
          </div>
        )}
      </Loaded>
    </>
  );
}

function PolicyCard({ policy }: { readonly policy: RolloutPolicy }) {
  return (
    <Card title="Policy" about="Applies to the current rollout, too" actions={<PolicyButton policy={policy} />}>
      <div className="stack-small">
        {policy.mode === 'immediate' ? (
          <Note tone="warn" title="New versions are offered to everyone at once">
            <p>The stages apply to unfinished rollouts only.</p>
          </Note>
        ) : null}
        <Table
          caption="Stages"
          columns={STAGES}
          rows={policy.stages}
          rowKey={({ percent }) => String(percent)}
          empty={null}
          stacked="compact"
        />
        <p>
          At most {policy.max_updating_network_percent}% of the network's slots and {policy.max_updating_cohort_percent}% of the slots of
          any model or chip family update at once. Owners {policy.owners_may_update_early ? 'may' : 'cannot'} update before their turn.
          {policy.canary_accounts.length === 0 ? null : ` ${pluralize(policy.canary_accounts.length, 'account')} in the first stage.`}
        </p>
      </div>
    </Card>
  );
}

const VERSIONS: readonly Column<VersionShare>[] = [
  { key: 'version', header: 'Version', rowHeader: true, cell: ({ version }) => (version === 'other' ? 'Not released' : version) },
  { key: 'machines', header: 'Machines', numeric: true, cell: ({ machines }) => <Count value={machines} /> },
  { key: 'share', header: 'Share', numeric: true, cell: ({ share }) => formatShare(share) },
];

const STAGES: readonly Column<Stage>[] = [
  { key: 'percent', header: 'Stage', rowHeader: true, cell: ({ percent }) => `${percent}% of machines` },
  { key: 'soak', header: 'Minimum time', numeric: true, cell: ({ soak_minutes }) => soakText(soak_minutes) },
  { key: 'machines', header: 'Minimum updated machines', numeric: true, cell: ({ min_machines }) => <Count value={min_machines} /> },
];

const ROLLOUTS: readonly Column<AdminRollout>[] = [
  { key: 'version', header: 'Version', rowHeader: true, cell: ({ version }) => version },
  { key: 'state', header: 'State', cell: ({ state }) => <Badge tone={STATES[state].tone}>{STATES[state].label}</Badge> },
  { key: 'started', header: 'Started', cell: ({ started_at }) => <Time at={started_at} as="date-time" /> },
  { key: 'ended', header: 'Ended', cell: ({ ended_at }) => (ended_at === null ? '—' : <Time at={ended_at} as="date-time" />) },
];

function soakText(minutes: number): string {
  return minutes % 60 === 0 ? pluralize(minutes / 60, 'hour') : pluralize(minutes, 'minute');
}
