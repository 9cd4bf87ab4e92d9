/** Where withdrawals are paid to: an account at the payment service, which asks its owner what it must know. */
import type { ConsolePayoutAccount } from '@inference/formats';
import { useState } from 'react';
import { api } from '../../api/api-client.js';
import { ErrorNote } from '../../ui/feedback/error-state.js';
import { Note } from '../../ui/feedback/note.js';
import { Button } from '../../ui/forms/button.js';

export function PayoutAccount() {
  const [busy, setBusy] = useState(false);
  const [ready, setReady] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);
  const open = async (): Promise<void> => {
    setBusy(true);
    setProblem(null);
    try {
      const account = await api.post<ConsolePayoutAccount>('/console/v1/payout-account');
      setReady(account.ready);
      if (account.onboarding_url !== null) window.location.assign(account.onboarding_url);
    } catch (error) {
      setProblem(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <div className="stack-small">
      <h3>Where it is paid to</h3>
      {problem === null ? null : <ErrorNote error={problem} />}
      {ready ? (
        <Note tone="good">The payment service can pay you. There is nothing left to do.</Note>
      ) : (
        <>
          <p className="small muted">
            The payment service asks for your name and your bank account, on its own page. This network learns neither.
          </p>
          <div>
            <Button busy={busy} onClick={() => void open()}>
              Set up where you are paid
            </Button>
          </div>
        </>
      )}
    </div>
  );
}
