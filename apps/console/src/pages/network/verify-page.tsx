/** `/verify`: verifies a record, response or receipt in the browser. Input: a file, text, or the account's receipt (`?receipt=<id>`). */
import './network.css';
import { FileUp } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import { api } from '../../api/api-client.js';
import { AnswerReport } from '../../features/trust/answer-report.js';
import { Card, PageHeader } from '../../ui/display/page.js';
import { ErrorNote, errorText } from '../../ui/feedback/error-state.js';
import { Progress } from '../../ui/feedback/note.js';
import { Button } from '../../ui/forms/button.js';
import { CheckField, TextAreaField } from '../../ui/forms/field.js';
import { useUrlText } from '../../ui/navigation/url-state.js';
import { ModesHint } from './modes-hint.js';
import { InputError, readInput } from './verify/read-input.js';
import { type SavedVerification, useSavedVerification } from './verify/use-saved-verification.js';
import { useVerification } from './verify/use-verification.js';
import { VerificationView } from './verify/verification-view.js';

/** Maximum file size, enough for a feed of several thousand providers. */
const MAX_BYTES = 64 * 2 ** 20;

export function Page() {
  const [text, setText] = useState('');
  const [request, setRequest] = useState('');
  const [asOfChallenge, setAsOfChallenge] = useState(false);
  const { verification, saved, problem, setProblem, isBusy, verify } = useVerifier({ request, asOfChallenge });

  const verifyFile = async (file: File): Promise<void> => {
    if (file.size > MAX_BYTES) setProblem('This file is too large. Choose one of at most 64 MB.');
    else await verify(new Uint8Array(await file.arrayBuffer()), false);
  };
  const verifyText = (): void => {
    if (text.trim() === '') setProblem('Paste a record, an answer or a receipt first, or choose a file.');
    else void verify(new TextEncoder().encode(text), true);
  };
  useReceiptOfUrl({
    onReceipt: async (json) => {
      setText(json);
      await verify(new TextEncoder().encode(json), true);
    },
    onError: (error) => setProblem(errorText(error)),
  });

  return (
    <>
      <PageHeader
        title="Verify a response or record"
        about="Verifies a response, a receipt or a machine's record in this browser. Nothing that you paste is sent; the record behind a response or a receipt is downloaded."
      />
      <div className="stack">
        <Card title="Response, receipt or record">
          <form
            className="stack-small"
            onSubmit={(event) => {
              event.preventDefault();
              verifyText();
            }}
          >
            <TextAreaField
              label="Text to verify"
              hint={
                <>
                  A response with its headers as <code>curl -i</code> prints it, also a stream, a receipt from <code>/v1/receipts/…</code>,
                  or a record or feed from <code>/v1/providers/attestation</code>.
                </>
              }
              error={problem}
              value={text}
              onChange={(event) => setText(event.target.value)}
              spellCheck={false}
              autoComplete="off"
              rows={8}
            />
            <VerifyOptions request={request} onRequest={setRequest} asOfChallenge={asOfChallenge} onAsOfChallenge={setAsOfChallenge} />
            <div className="row">
              <Button type="submit" kind="primary" busy={isBusy}>
                Verify
              </Button>
              <FileButton onFile={(file) => void verifyFile(file)} />
            </div>
          </form>
        </Card>
        {verification.state === 'idle' ? null : (
          <Card title="Result">
            <VerificationView verification={verification} />
          </Card>
        )}
        {saved.state === 'idle' ? null : (
          <Card title="Result">
            <SavedView saved={saved} />
          </Card>
        )}
        <ModesHint />
      </div>
    </>
  );
}

/** Returns `verify`, which recognises a record, a saved response or a receipt and verifies the input, and the state of the result. */
function useVerifier({ request, asOfChallenge }: { readonly request: string; readonly asOfChallenge: boolean }) {
  const { verification, start, clear: clearRecord } = useVerification();
  const { saved, verify: verifySaved, clear: clearSaved } = useSavedVerification();
  const [problem, setProblem] = useState<string>();
  const isBusy = verification.state === 'opening' || verification.state === 'running' || saved.state === 'running';

  const verify = async (bytes: Uint8Array, isPasted: boolean): Promise<void> => {
    setProblem(undefined);
    clearRecord();
    clearSaved();
    try {
      const input = readInput(bytes);
      if (input.kind === 'record') await start(async () => input.value, asOfChallenge ? 'newest-challenge' : 'now');
      else await verifySaved({ input, request, isPasted });
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      setProblem(error.message);
    }
  };
  return { verification, saved, problem, setProblem, isBusy, verify };
}

interface ReceiptHandlers {
  readonly onReceipt: (json: string) => Promise<void>;
  readonly onError: (error: unknown) => void;
}

/** Loads the receipt that `?receipt=<id>` names, once per id. */
function useReceiptOfUrl({ onReceipt, onError }: ReceiptHandlers): void {
  const [receiptId] = useUrlText('receipt');
  // biome-ignore lint/correctness/useExhaustiveDependencies: a receipt is loaded once per id
  useEffect(() => {
    if (receiptId === '') return;
    const leaving = new AbortController();
    const load = async (): Promise<void> => {
      try {
        const receipt = await api.get<object>(`/v1/receipts/${encodeURIComponent(receiptId)}`, { signal: leaving.signal });
        await onReceipt(JSON.stringify(receipt, null, 2));
      } catch (error) {
        if (!leaving.signal.aborted) onError(error);
      }
    };
    void load();
    return () => leaving.abort();
  }, [receiptId]);
}

interface VerifyOptionsProps {
  readonly request: string;
  readonly onRequest: (request: string) => void;
  readonly asOfChallenge: boolean;
  readonly onAsOfChallenge: (asOfChallenge: boolean) => void;
}

function VerifyOptions({ request, onRequest, asOfChallenge, onAsOfChallenge }: VerifyOptionsProps) {
  return (
    <details className="verify-options">
      <summary>Options</summary>
      <div className="stack-small">
        <TextAreaField
          label="Request body"
          hint="For an answer or a receipt: exactly the body that you sent, to check that the answer belongs to it."
          value={request}
          onChange={(event) => onRequest(event.target.value)}
          spellCheck={false}
          autoComplete="off"
          rows={3}
        />
        <CheckField
          label="Verify as of the newest challenge"
          hint="For a record: older than 20 minutes, it no longer proves that its machine answers now. This option verifies it as of the time of its newest challenge."
          checked={asOfChallenge}
          onChange={(event) => onAsOfChallenge(event.target.checked)}
        />
      </div>
    </details>
  );
}

function FileButton({ onFile }: { readonly onFile: (file: File) => void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <Button icon={<FileUp size={16} aria-hidden="true" />} onClick={() => input.current?.click()}>
        Choose a file
      </Button>
      <input
        ref={input}
        type="file"
        aria-label="File to verify"
        tabIndex={-1}
        className="visually-hidden"
        onChange={(event) => {
          const file = event.target.files?.[0];
          if (file !== undefined) onFile(file);
          event.target.value = '';
        }}
      />
    </>
  );
}

function SavedView({ saved }: { readonly saved: Exclude<SavedVerification, { readonly state: 'idle' }> }) {
  switch (saved.state) {
    case 'running':
      return <Progress label="Loading the verifier and the record of the machine…" />;
    case 'failed':
      return (
        <ErrorNote title={saved.error instanceof InputError ? 'This cannot be verified.' : 'Verification failed.'} error={saved.error} />
      );
    case 'done':
      return <AnswerReport {...saved.report} />;
  }
}
