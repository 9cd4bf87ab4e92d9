/** Status of a connected machine: recommended actions, models, trust, recent placement decisions. */
import type { ProviderStatusAnswer } from '@inference/protocol';
import { Card } from '../../ui/display/card.js';
import { counted, formatRate, formatShare } from '../../ui/display/number.js';
import { type Column, Table } from '../../ui/display/table.js';
import { Time } from '../../ui/display/time.js';
import { StateBadge, WordBadge } from './status-badge.js';
import { conditionWords, gateWords, inWords, modelState, outcomeWord, partName, partState, trustLevel } from './status-texts.js';

type Status = ProviderStatusAnswer;
type Model = Status['models'][number];
type Decision = Status['decisions'][number];

interface MachineStandingProps {
  readonly status: Status;
  /** Heading of the recommended actions; owners and operators see different ones. */
  readonly stepsTitle?: string;
}

export function MachineStanding({ status, stepsTitle = 'Recommended actions' }: MachineStandingProps) {
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
      <TrustParts level={status.trust_level} parts={status.trust_parts} />
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
        <dl className="facts">
          <dt>Condition</dt>
          <dd>{conditionWords(status.host)}</dd>
          <dt>Record</dt>
          <dd>{recordWords(status.reputation)}</dd>
          <dt>Serial number</dt>
          <dd>{status.serial_number}</dd>
          <dt>Agent</dt>
          <dd>
            {status.agent.name} {status.agent.version}
          </dd>
          <dt>Provider id</dt>
          <dd>
            <code>{status.provider_id}</code>
          </dd>
        </dl>
      </Card>
    </>
  );
}

const MODEL_COLUMNS: readonly Column<Model>[] = [
  { key: 'id', header: 'Model', rowHeader: true, cell: ({ id }) => id },
  { key: 'state', header: 'State', cell: ({ state }) => modelState(state) },
  {
    key: 'routable',
    header: 'Eligible',
    cell: ({ routable, gate }) => (
      <StateBadge word={routable ? { label: 'Yes', tone: 'good' } : { label: gate === null ? 'Not yet' : gateWords(gate), tone: 'warn' }} />
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
  { key: 'outcome', header: 'Outcome', rowHeader: true, cell: ({ outcome }) => <WordBadge word={outcomeWord(outcome)} /> },
  { key: 'text', header: 'Why', cell: ({ text }) => text },
  { key: 'model', header: 'Model', cell: ({ model }) => model },
  { key: 'count', header: 'Times', numeric: true, cell: ({ count }) => count },
  { key: 'last', header: 'Last', cell: ({ last_at }) => <Time at={last_at} /> },
];

function decisionKey({ model, outcome, reason, first_at }: Decision): string {
  return `${first_at} ${model} ${outcome} ${reason}`;
}

function recordWords({ state, reason, until, recent_failures }: Status['reputation']) {
  if (state === 'well') return recent_failures === 0 ? 'Its jobs go well.' : `${counted(recent_failures, 'job')} failed lately.`;
  return (
    <>
      {gateWords(state)}
      {reason === null ? null : ` (${inWords(reason)})`}
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
}

const LEVEL_ABOUT: Readonly<Record<string, string>> = {
  hardware: 'Verified: the key, the protections of this Mac, and an Apple certificate that binds both.',
  self_signed: 'The key and the protections of this Mac are attested. The level “hardware” also requires device management.',
  none: 'A requirement for every job is not met, so the machine gets no requests.',
};

function TrustParts({ level, parts }: TrustPartsProps) {
  return (
    <Card title="Trust" about={LEVEL_ABOUT[level]} actions={<WordBadge word={trustLevel(level)} />}>
      <ul className="parts">
        {parts.map(({ name, state, reason, remedy }) => (
          <li key={name} className="part">
            <span className="part-head">
              <span className="part-name">{partName(name)}</span>
              <WordBadge word={partState(state)} />
            </span>
            {reason === undefined ? null : <p className="part-remedy">{remedy ?? inWords(reason)}</p>}
          </li>
        ))}
      </ul>
    </Card>
  );
}
