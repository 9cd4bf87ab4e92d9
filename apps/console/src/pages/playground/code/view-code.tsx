/** `ViewCode`: button and dialog that show the next request as code. */
import { Code } from 'lucide-react';
import { useState } from 'react';
import { Link } from 'wouter';
import { PATHS } from '../../../routing/paths.js';
import { Dialog } from '../../../ui/dialogs/dialog.js';
import { Button } from '../../../ui/forms/button.js';
import { CopyField } from '../../../ui/forms/copy-field.js';
import { Segmented } from '../../../ui/forms/field.js';
import { Tabs } from '../../../ui/navigation/tabs.js';
import { imageFilesOf, KEY_VARIABLE, requestCode } from './request-code.js';

interface ViewCodeProps {
  readonly endpoint: 'chat' | 'images';
  /** One request per model. `body` is called only while the dialog is open. An empty list disables the button. */
  readonly requests: readonly { readonly model: string; readonly body: () => string }[];
  /** Whether the message of the request is an example. */
  readonly isExample: boolean;
}

export function ViewCode(props: ViewCodeProps) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button disabled={props.requests.length === 0} icon={<Code size={16} aria-hidden="true" />} onClick={() => setOpen(true)}>
        View code
      </Button>
      <Dialog
        open={open}
        onClose={() => setOpen(false)}
        title="Request as code"
        description={
          <>
            The code reads an <Link href={PATHS.keys}>API key</Link> from the environment variable <code>{KEY_VARIABLE}</code>.
            {props.isExample ? ' Its message is an example: type your own to see it here.' : ''}
          </>
        }
        wide
      >
        <Requests {...props} />
      </Dialog>
    </>
  );
}

function Requests({ endpoint, requests }: ViewCodeProps) {
  const [selected, setSelected] = useState(0);
  const request = requests[selected] ?? requests[0];
  if (request === undefined) return null;
  const body = request.body();
  const languages = requestCode({ endpoint, base: window.location.origin, body });
  const files = [...imageFilesOf(body).values()];
  return (
    <div className="stack-small">
      {requests.length < 2 ? null : (
        <Segmented
          label="Request"
          value={String(selected)}
          options={requests.map(({ model }, index) => ({ value: String(index), label: model }))}
          onValue={(value) => setSelected(Number(value))}
        />
      )}
      {files.length === 0 ? null : (
        <p className="field-hint">
          Save the images as {files.join(', ')} in the folder in which you run the code. The playground sends them scaled down.
        </p>
      )}
      <Tabs
        label="Languages"
        tabs={languages.map(({ id, title, code }) => ({
          value: id,
          label: title,
          content: <CopyField label={`${title} code`} hideLabel multiline value={code} />,
        }))}
      />
    </div>
  );
}
