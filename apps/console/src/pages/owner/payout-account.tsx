/** Where withdrawals are paid to: an account at the payment service, which asks its owner what it must know. */
import type { ConsolePayoutAccount } from '@inference/formats';
import { useMutation } from '@tanstack/react-query';
import { api } from '../../api/api-client.js';
import { ErrorNote } from '../../ui/feedback/error-state.js';
import { Note } from '../../ui/feedback/note.js';
import { Button } from '../../ui/forms/button.js';

export function PayoutAccount() {
  const { mutate, isPending, error, data } = useMutation({
    mutationFn: () => api.post<ConsolePayoutAccount>('/console/v1/payout-account'),
    onSuccess: ({ onboarding_url }) => {
      if (onboarding_url !== null) window.location.assign(onboarding_url);
    },
  });
  return (
    <div className="stack-small">
      <h3>Payouts</h3>
      <ErrorNote error={error} />
      {data?.ready ? (
        <Note tone="good">Payouts are set up. No further action is needed.</Note>
      ) : (
        <>
          <p className="small muted">
            The payment service asks for your name and bank account on its own page. This network does not see them.
          </p>
          <div>
            <Button busy={isPending} onClick={() => mutate()}>
              Set up payouts
            </Button>
          </div>
        </>
      )}
    </div>
  );
}
