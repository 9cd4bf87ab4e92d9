/** Adds a deposit: amount and reference, then a confirmation. Each reference deposits once. */
import type { AdminAccountView } from '@inference/formats';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../../../api/api-client.js';
import { checkUsd, microUsdOf } from '../../../features/account/usd-amount.js';
import { UsdField } from '../../../features/account/usd-field.js';
import { Dialog, DialogActions, FormDialog } from '../../../ui/dialogs/dialog.js';
import { formatUsd } from '../../../ui/display/figures.js';
import { ErrorNote } from '../../../ui/feedback/error-state.js';
import { Button } from '../../../ui/forms/button.js';
import { Field } from '../../../ui/forms/field.js';
import { useFormMutation } from '../../../ui/forms/form.js';
import { accountPath, useReportChange } from '../queries.js';

interface NewDeposit {
  readonly amount_micro_usd: number;
  readonly reference: string;
}

export function DepositDialog({ account, onClose }: { readonly account: AdminAccountView; readonly onClose: () => void }) {
  const [newDeposit, setNewDeposit] = useState<NewDeposit | null>(null);
  const reportChange = useReportChange();
  const form = useFormMutation({ amount: '', reference: '' }, async ({ amount, reference }) => {
    setNewDeposit({ amount_micro_usd: microUsdOf(amount), reference });
  });
  const name = account.email ?? account.name;
  const deposit = useMutation({
    mutationFn: async (body: NewDeposit) => {
      await api.post(`${accountPath(account.id)}/deposits`, body);
      await reportChange(`${formatUsd(body.amount_micro_usd)} deposited`);
      onClose();
    },
  });
  if (newDeposit !== null) {
    return (
      <Dialog onClose={onClose} title={`Deposit ${formatUsd(newDeposit.amount_micro_usd)}?`} persistent>
        <p>
          {name} can spend the amount immediately. The deposit is posted as “{newDeposit.reference}”; each reference deposits once.
        </p>
        <ErrorNote error={deposit.error} title="The deposit failed." />
        <DialogActions>
          <Button onClick={() => setNewDeposit(null)}>Back</Button>
          <Button kind="danger" busy={deposit.isPending} onClick={() => deposit.mutate(newDeposit)}>
            Deposit {formatUsd(newDeposit.amount_micro_usd)}
          </Button>
        </DialogActions>
      </Dialog>
    );
  }
  return (
    <FormDialog onClose={onClose} title="Add deposit" description={`For ${name}.`} form={form} submit="Continue">
      <UsdField label="Amount" {...form.field('amount', { validate: (amount) => checkUsd(amount) })} />
      <Field
        label="Reference"
        hint="For example, an invoice number. Letters, digits, dots, dashes and underscores."
        autoComplete="off"
        {...form.field('reference', {
          pattern: { value: /^[A-Za-z0-9._-]{1,64}$/, message: 'A reference has 1 to 64 letters, digits, dots, dashes and underscores.' },
          required: 'Enter a reference. Each reference deposits once.',
        })}
      />
    </FormDialog>
  );
}
