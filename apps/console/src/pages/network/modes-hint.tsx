/** `ModesHint`: sentence with a link from an attestation record to the page about modes. */
import { Link } from 'wouter';
import { PATHS } from '../../routing/paths.js';

export function ModesHint() {
  return (
    <p className="muted">
      A record describes a machine. Who sees a request depends on its mode: <Link href={PATHS.modes}>plain or end-to-end</Link>.
    </p>
  );
}
