/** `/verify`: checks a saved record in the browser, from a file or pasted text. */
import './network.css';
import { FileUp } from 'lucide-react';
import { useRef, useState } from 'react';
import { Card, PageHeader } from '../../ui/display/page.js';
import { Button } from '../../ui/forms/button.js';
import { CheckField, TextAreaField } from '../../ui/forms/field.js';
import { ModesHint } from './modes-hint.js';
import { NotARecordError } from './verify/run-verification.js';
import { useVerification } from './verify/use-verification.js';
import { VerificationView } from './verify/verification-view.js';

/** Room for a feed of several thousand providers. */
const MAX_BYTES = 64 * 2 ** 20;

export function Page() {
  const { verification, start } = useVerification();
  const [text, setText] = useState('');
  const [asOfChallenge, setAsOfChallenge] = useState(false);
  const [problem, setProblem] = useState<string>();
  const file = useRef<HTMLInputElement>(null);
  const asOf = asOfChallenge ? 'newest-challenge' : 'now';
  const busy = verification.state === 'opening' || verification.state === 'running';

  const read = async (chosen: File | undefined): Promise<void> => {
    if (chosen === undefined) return;
    if (chosen.size > MAX_BYTES) {
      setProblem('This file is too large to be a record. Choose one of at most 64 MB.');
      return;
    }
    setProblem(undefined);
    await start(async () => parsed(await chosen.text()), asOf);
  };
  const verifyText = (): void => {
    if (text.trim() === '') {
      setProblem('Paste a record first, or choose a file.');
      return;
    }
    setProblem(undefined);
    void start(async () => parsed(text), asOf);
  };

  return (
    <>
      <PageHeader
        title="Verify a record"
        about="Verifies a saved record, or a feed from /v1/providers/attestation, in this browser. No data leaves your browser."
      />
      <div className="stack">
        <Card title="Attestation record">
          <form
            className="stack-small"
            onSubmit={(event) => {
              event.preventDefault();
              verifyText();
            }}
          >
            <TextAreaField
              label="JSON of a record or a feed"
              error={problem}
              value={text}
              onChange={(event) => setText(event.target.value)}
              spellCheck={false}
              autoComplete="off"
              rows={8}
            />
            <CheckField
              label="Verify as of the newest challenge"
              hint="A record older than 20 minutes no longer proves that its machine answers now. This option verifies it as of the time of its newest challenge."
              checked={asOfChallenge}
              onChange={(event) => setAsOfChallenge(event.target.checked)}
            />
            <div className="row">
              <Button type="submit" kind="primary" busy={busy}>
                Verify
              </Button>
              <Button icon={<FileUp size={16} aria-hidden="true" />} onClick={() => file.current?.click()}>
                Choose a file
              </Button>
              <input
                ref={file}
                type="file"
                accept=".json,application/json"
                aria-label="File with a record"
                tabIndex={-1}
                className="visually-hidden"
                onChange={(event) => {
                  void read(event.target.files?.[0]);
                  event.target.value = '';
                }}
              />
            </div>
          </form>
        </Card>
        {verification.state === 'idle' ? null : (
          <Card title="Result">
            <VerificationView verification={verification} />
          </Card>
        )}
        <ModesHint />
      </div>
    </>
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new NotARecordError('It is not JSON. Copy the whole record, from the first brace to the last.');
  }
}
