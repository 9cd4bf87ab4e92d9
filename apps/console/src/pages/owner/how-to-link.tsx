/** How a Mac comes into this list: install the agent, sign it in, approve the code that it shows. */

import { PATHS } from '../../routing/paths.js';
import { CopyField } from '../../ui/forms/copy-field.js';
import { LinkButton } from '../../ui/navigation/link-button.js';

export function HowToLink() {
  return (
    <ol className="steps">
      <li>
        <h3>Install the agent on the Mac</h3>
        <p>Requires Apple silicon. The provider guide in the documentation describes installation and the choice of a model.</p>
      </li>
      <li>
        <h3>Sign the agent in</h3>
        <CopyField label="Command" hideLabel value={`inference-provider login --coordinator ${window.location.origin}`} />
        <p>The command shows a code of eight letters.</p>
      </li>
      <li>
        <h3>Approve the code here</h3>
        <p>The machine then appears in this list, and its earnings are yours.</p>
        <LinkButton href={PATHS.link}>Enter a code</LinkButton>
      </li>
    </ol>
  );
}
