/** `MachineAway`: last known state of a disconnected machine, and instructions to reconnect. */
import type { ConsoleMachineView } from '@inference/formats';
import { disconnectText } from '../../features/machines/status-texts.js';
import { MachineVerdictBadge } from '../../features/trust/verdict-badge.js';
import { pluralize, Time } from '../../ui/display/figures.js';
import { Card, Fact, Facts } from '../../ui/display/page.js';
import { CopyField } from '../../ui/forms/copy-field.js';

export function MachineAway({ machine: { provider_id, last_seen } }: { readonly machine: ConsoleMachineView }) {
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
