/** A disconnected machine: last known state, and how to reconnect it. */
import type { ConsoleMachineView } from '@inference/formats';
import { disconnectText, trustLevelLabel } from '../../features/machines/status-texts.js';
import { pluralize, Time } from '../../ui/display/figures.js';
import { Card } from '../../ui/display/page.js';
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
          <dl className="facts">
            <dt>Time</dt>
            <dd>
              <Time at={last_seen.at} as="date-time" />
            </dd>
            <dt>Models</dt>
            <dd>{last_seen.models.join(', ') || 'none'}</dd>
            <dt>Trust</dt>
            <dd>{trustLevelLabel(last_seen.trust_level).label}</dd>
            <dt>Served</dt>
            <dd>
              {pluralize(last_seen.requests_served, 'request')}, {pluralize(last_seen.tokens_generated, 'token')}
            </dd>
            <dt>Chip</dt>
            <dd>{last_seen.chip_name}</dd>
            <dt>Serial number</dt>
            <dd>{last_seen.serial_number}</dd>
            <dt>Agent</dt>
            <dd>
              {last_seen.agent.name} {last_seen.agent.version}
            </dd>
            <dt>Provider ID</dt>
            <dd>
              <code>{provider_id}</code>
            </dd>
          </dl>
        </Card>
      )}
    </>
  );
}
