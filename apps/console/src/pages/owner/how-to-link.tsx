/** How a Mac comes into this list: install the agent, sign it in, approve the code that it shows. */

import { PATHS } from '../../routing/paths.js';
import { CopyField } from '../../ui/forms/copy-field.js';
import { LinkButton } from '../../ui/navigation/link-button.js';

export function HowToLink() {
  return (
    <ol className="steps">
      <li>
        <h3>Install the agent on the Mac</h3>
        <p>It needs Apple silicon. The guide of the provider, in the documentation, says how to install it and choose a model.</p>
      </li>
      <li>
        <h3>Let it sign in</h3>
        <CopyField label="Command" hideLabel value={`inference-provider login --coordinator ${window.location.origin}`} />
        <p>It shows a code of eight letters.</p>
      </li>
      <li>
        <h3>Approve the code here</h3>
        <p>From then on the machine is in this list, and what it earns is yours.</p>
        <LinkButton href={PATHS.link}>Enter a code</LinkButton>
      </li>
    </ol>
  );
}
