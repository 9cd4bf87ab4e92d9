/** Badges for the status of a machine. */
import { Badge } from '../../ui/display/badge.js';
import { NOT_CONNECTED, type StatusLabel } from './status-texts.js';

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
