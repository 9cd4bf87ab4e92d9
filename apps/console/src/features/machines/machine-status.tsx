/** `MachineStatus`: cards on the pages of owners and operators about a connected machine, and badges for states of machines. */
import type { ProviderStatusAnswer } from '@inference/protocol';
import { formatRate, formatShare, pluralize, Time } from '../../ui/display/figures.js';
import { Badge, Card, Fact, Facts } from '../../ui/display/page.js';
import { type Column, Table } from '../../ui/display/table.js';
import { Legend } from '../trust/legend.js';
import { MachineVerdictBadge } from '../trust/verdict-badge.js';
import {
  gateText,
  hostConditionText,
  humanizeCode,
  modelStateText,
  NOT_CONNECTED,
  outcomeLabel,
  partLabel,
  partStateLabel,
  type StatusLabel,
} from './status-texts.js';

type Status = ProviderStatusAnswer;
type Model = Status['models'][number];
type Decision = Status['decisions'][number];

interface MachineStatusProps {
  readonly status: Status;
  /** Heading of the recommended actions, which differ for owners and operators. */
  readonly stepsTitle?: string;
}

export function MachineStatus({ status, stepsTitle = 'Recommended actions' }: MachineStatusProps) {
  return (
    <>
      <Card title={stepsTitle} about="Most effective first.">
        <ol className="next-steps">
          {status.next_steps.map(({ code, text, model }) => (
            <li key={`${code} ${model ?? ''}`}>
              {model === undefined ? null : <code>{model}</code>} {text}
            </li>
          ))}
        </ol>
      </Card>
      <Card title="Models" flush>
        <Table
          caption="Models of this machine"
          columns={MODEL_COLUMNS}
          rows={status.models}
          rowKey={({ id }) => id}
          empty={<p className="card-empty">No model is offered now: it is still loading, or failed to load.</p>}
          stacked
        />
      </Card>
      <TrustParts level={status.trust_level} parts={status.trust_parts} simulated={status.simulated ?? false} />
      <Card
        title="Recent placement decisions"
        about="Outcome for this machine each time a request was placed. Requests that went elsewhere are sampled."
        flush
      >
        <Table
          caption="Recent placement decisions about this machine"
          columns={DECISION_COLUMNS}
          rows={status.decisions}
          rowKey={decisionKey}
          empty={<p className="card-empty">No request for its models was placed since it connected.</p>}
          stacked
        />
      </Card>
      <Card title="About this machine">
        <Facts>
          <Fact label="Condition">{hostConditionText(status.host)}</Fact>
          <Fact label="Reputation">{reputationText(status.reputation)}</Fact>
          <Fact label="Serial number">{status.serial_number}</Fact>
          <Fact label="Agent">{`${status.agent.name} ${status.agent.version}`}</Fact>
          <Fact label="Provider ID">
            <code>{status.provider_id}</code>
          </Fact>
        </Facts>
      </Card>
    </>
  );
}

const MODEL_COLUMNS: readonly Column<Model>[] = [
  { key: 'id', header: 'Model', rowHeader: true, cell: ({ id }) => id },
  { key: 'state', header: 'State', cell: ({ state }) => modelStateText(state) },
  {
    key: 'routable',
    header: 'Eligible',
    cell: ({ routable, gate }) => (
      <MachineStatusBadge
        status={routable ? { label: 'Yes', tone: 'good' } : { label: gate === null ? 'Not yet' : gateText(gate), tone: 'warn' }}
      />
    ),
  },
  { key: 'share', header: 'Share', numeric: true, cell: ({ share }) => formatShare(share) },
  { key: 'placements', header: 'Placed', numeric: true, cell: ({ placements }) => placements },
  { key: 'asked', header: 'Requests in 5 min', numeric: true, cell: ({ demand }) => demand.requests_last_5_minutes },
  {
    key: 'decode',
    header: 'Tokens/s',
    numeric: true,
    cell: ({ decode_tps, measured_jobs }) => `${formatRate(decode_tps)}${measured_jobs === 0 ? ' (estimate)' : ''}`,
  },
];

const DECISION_COLUMNS: readonly Column<Decision>[] = [
  { key: 'outcome', header: 'Outcome', rowHeader: true, cell: ({ outcome }) => <LabelBadge status={outcomeLabel(outcome)} /> },
  { key: 'text', header: 'Why', cell: ({ text }) => text },
  { key: 'model', header: 'Model', cell: ({ model }) => model },
  { key: 'count', header: 'Times', numeric: true, cell: ({ count }) => count },
  { key: 'last', header: 'Last', cell: ({ last_at }) => <Time at={last_at} /> },
];

function decisionKey({ model, outcome, reason, first_at }: Decision): string {
  return `${first_at} ${model} ${outcome} ${reason}`;
}

function reputationText({ state, reason, until, recent_failures }: Status['reputation']) {
  if (state === 'well') return recent_failures === 0 ? 'No recent failures.' : `${pluralize(recent_failures, 'request')} failed recently.`;
  return (
    <>
      {gateText(state)}
      {reason === null ? null : ` (${humanizeCode(reason)})`}
      {until === null ? null : (
        <>
          , until <Time at={until} as="date-time" />
        </>
      )}
      .
    </>
  );
}

interface TrustPartsProps {
  readonly level: string;
  readonly parts: ProviderStatusAnswer['trust_parts'];
  readonly simulated: boolean;
}

const LEVEL_ABOUT: Readonly<Record<string, string>> = {
  hardware: 'The coordinator verified the key, the protections of this Mac, and an Apple certificate bound to the key.',
  self_signed: 'The key and the protections of this Mac are attested. The level “hardware” also requires device management.',
  none: 'A requirement for every request is not met, so the machine gets no requests.',
};

const SIMULATION_ABOUT = 'This machine is simulated: no check says anything about a real Mac.';

/** Replaces "Passed" for a simulated machine, whose checks prove nothing. */
const SIMULATED: StatusLabel = { label: 'Simulated', tone: 'warn' };

function TrustParts({ level, parts, simulated }: TrustPartsProps) {
  const labelOf = (state: string): StatusLabel => (simulated && state === 'ok' ? SIMULATED : partStateLabel(state));
  return (
    <Card
      title="Trust"
      about={simulated ? SIMULATION_ABOUT : LEVEL_ABOUT[level]}
      actions={<MachineVerdictBadge trustLevel={level} simulated={simulated} />}
    >
      <ul className="parts">
        {parts.map(({ name, state, reason, remedy }) => (
          <li key={name} className="part">
            <span className="part-head">
              <span className="part-name">{partLabel(name)}</span>
              <LabelBadge status={labelOf(state)} />
            </span>
            {reason === undefined ? null : <p className="part-remedy">{remedy ?? humanizeCode(reason)}</p>}
          </li>
        ))}
      </ul>
      <Legend topics={['verdicts', 'states', 'levels']} />
    </Card>
  );
}

export function LabelBadge({ status, dot = false }: { readonly status: StatusLabel; readonly dot?: boolean }) {
  return (
    <Badge tone={status.tone} dot={dot}>
      {status.label}
    </Badge>
  );
}

/** `status`: null while the machine is not connected. */
export function MachineStatusBadge({ status }: { readonly status: StatusLabel | null }) {
  return <LabelBadge status={status ?? NOT_CONNECTED} dot />;
}
