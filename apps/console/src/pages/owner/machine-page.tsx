/** `/machines/:id`: current status of one machine, and the actions of its owner. */
import type { ConsoleMachineView } from '@inference/formats';
import { useParams } from 'wouter';
import { LoadedPage } from '../../api/loaded-page.js';
import { usePermission } from '../../api/session.js';
import { lastDays } from '../../features/account/utc-days.js';
import { machineName } from '../../features/machines/machine-name.js';
import { MachineStatus, MachineStatusBadge } from '../../features/machines/machine-status.js';
import { disconnectText, statusLabel } from '../../features/machines/status-texts.js';
import { MachineVerdictBadge } from '../../features/trust/verdict-badge.js';
import { PATHS } from '../../routing/paths.js';
import { formatRate, formatShare, Money, pluralize, Time } from '../../ui/display/figures.js';
import { Card, Fact, Facts, PageHeader, Stat, Stats } from '../../ui/display/page.js';
import { ErrorNote } from '../../ui/feedback/error-state.js';
import { Note } from '../../ui/feedback/note.js';
import { EmptyState } from '../../ui/feedback/placeholders.js';
import { LinkButton } from '../../ui/forms/button.js';
import { CopyField } from '../../ui/forms/copy-field.js';
import { CommandLog } from './command-log.js';
import { sumOf } from './earnings.js';
import { MachineActions } from './machine-actions.js';
import { MachineControl } from './machine-control.js';
import { useEarnings, useMachine } from './queries.js';

export function Page() {
  const { id = '' } = useParams();
  const machine = useMachine(id);
  const notFound = (
    <EmptyState level={1} title="Machine not found" action={<LinkButton href={PATHS.machines}>Your machines</LinkButton>}>
      The machine was unlinked, or was never linked to this account.
    </EmptyState>
  );
  return (
    <LoadedPage
      query={machine}
      subject="The machine"
      notFound={notFound}
      page={(data) => <Machine machine={data} error={machine.error} />}
    />
  );
}

function Machine({ machine, error }: { readonly machine: ConsoleMachineView; readonly error: Error | null }) {
  const { provider_id, status, last_seen, hold } = machine;
  const canWrite = usePermission('machines.write');
  const chipName = (status ?? last_seen)?.chip_name ?? null;
  const name = machineName({ provider_id, name: machine.name, chip_name: chipName });
  return (
    <>
      <PageHeader
        title={name}
        about={
          <span className="row">
            <MachineStatusBadge status={status === null ? null : statusLabel(status.status)} />
            {chipName === null || chipName === name ? null : <span>{chipName}</span>}
            {status !== null ? (
              <span>
                connected <Time at={status.connected_at} />
              </span>
            ) : last_seen === null ? null : (
              <span>
                last seen <Time at={last_seen.at} />
              </span>
            )}
          </span>
        }
        actions={canWrite ? <MachineActions machine={machine} name={name} /> : undefined}
      />
      <div className="stack">
        {error === null ? null : <ErrorNote error={error} title="The information below is out of date." />}
        {hold === null ? null : (
          <Note tone="bad" title="Quarantined by the operator of this network">
            <p>“{hold.reason}”</p>
            <p>
              Since <Time at={hold.since} as="date-time" />, and until the operator releases it, the machine gets no requests.
            </p>
          </Note>
        )}
        {status === null || hold !== null ? null : <NotAccepting status={status} />}
        <MachineFigures machine={machine} />
        {machine.control === null ? null : <MachineControl providerId={provider_id} control={machine.control} />}
        {status === null ? <DisconnectedMachine machine={machine} /> : <MachineStatus status={status} />}
        <CommandLog providerId={provider_id} />
      </div>
    </>
  );
}

/** Note on why a connected machine gets no requests. Renders nothing for status `online`. */
function NotAccepting({ status: { status, status_remedy, availability } }: { readonly status: NonNullable<ConsoleMachineView['status']> }) {
  if (status === 'online') return null;
  const until = availability?.until ?? null;
  return (
    <Note tone={status === 'away' || status === 'draining' ? 'neutral' : 'warn'} title="Not accepting requests">
      <p>{availability?.text ?? status_remedy ?? statusLabel(status).label}</p>
      {until === null ? null : (
        <p>
          It accepts requests again on <Time at={until} as="date-time" />.
        </p>
      )}
    </Note>
  );
}

function MachineFigures({ machine: { provider_id, status, last_seen } }: { readonly machine: ConsoleMachineView }) {
  const month = useEarnings(lastDays(30, Date.now())).data?.data.filter((row) => row.provider_id === provider_id);
  const today = month?.filter(({ day }) => day === lastDays(1, Date.now()).to);
  const rate = Math.max(0, ...(status?.models.map(({ decode_tps }) => decode_tps) ?? [last_seen?.decode_tps ?? 0]));
  return (
    <Stats>
      <Stat label="Earned today" value={today === undefined ? undefined : <Money microUsd={sumOf(today).earned} />} hint="UTC" />
      <Stat
        label="Earned in 30 days"
        value={month === undefined ? undefined : <Money microUsd={sumOf(month).earned} />}
        hint={month === undefined ? undefined : `with ${pluralize(sumOf(month).jobs, 'request')}`}
      />
      <Stat
        label="Share of traffic"
        value={status === null ? '—' : formatShare(status.share)}
        hint={status === null ? 'only while connected' : `${pluralize(status.placements, 'request')} since it connected`}
      />
      <Stat
        label="Tokens per second"
        value={rate === 0 ? '—' : formatRate(rate)}
        hint={status === null ? 'when it was last seen' : 'of its fastest model'}
      />
      <Stat label="Requests now" value={status === null ? '—' : `${status.running_jobs} of ${status.slots}`} />
    </Stats>
  );
}

/** Last known state of a disconnected machine, and instructions to reconnect. */
function DisconnectedMachine({ machine: { provider_id, last_seen } }: { readonly machine: ConsoleMachineView }) {
  return (
    <>
      <Card title="Not connected" about="The machine gets no requests and earns nothing until its agent reconnects.">
        <div className="stack-small">
          {last_seen?.left ? <p>{disconnectText(last_seen.left)}</p> : null}
          <p>Wake the Mac, check its internet connection, and check the agent:</p>
          <CopyField label="Command" hideLabel value="inference-provider status" />
          <p>If the agent is not running, start it:</p>
          <CopyField label="Command that starts it" hideLabel value="inference-provider start" />
        </div>
      </Card>
      {last_seen === null ? null : (
        <Card title="Last connection">
          <Facts>
            <Fact label="Time">
              <Time at={last_seen.at} as="date-time" />
            </Fact>
            <Fact label="Models">{last_seen.models.join(', ') || 'none'}</Fact>
            <Fact label="Trust">
              <MachineVerdictBadge trustLevel={last_seen.trust_level} />
            </Fact>
            <Fact label="Served">
              {pluralize(last_seen.requests_served, 'request')}, {pluralize(last_seen.tokens_generated, 'token')}
            </Fact>
            <Fact label="Chip">{last_seen.chip_name}</Fact>
            <Fact label="Serial number">{last_seen.serial_number}</Fact>
            <Fact label="Agent">{`${last_seen.agent.name} ${last_seen.agent.version}`}</Fact>
            <Fact label="Provider ID">
              <code>{provider_id}</code>
            </Fact>
          </Facts>
        </Card>
      )}
    </>
  );
}
