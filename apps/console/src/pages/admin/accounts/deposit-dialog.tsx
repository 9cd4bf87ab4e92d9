/** `DepositDialog`: adds a manual deposit. Asks for amount and reference, then for confirmation. A reference can be used once. */
import type { AdminAccountView } from '@inference/formats';
import { useState } from 'react';
import { api } from '../../../api/api-client.js';
import { checkUsd, microUsdOf } from '../../../features/account/usd-amount.js';
import { UsdField } from '../../../features/account/usd-field.js';
import { ConfirmDialog, FormDialog } from '../../../ui/dialogs/dialog.js';
import { formatUsd } from '../../../ui/display/figures.js';
import { Field } from '../../../ui/forms/field.js';
import { useFormMutation } from '../../../ui/forms/form.js';
import { accountPath, useToastAndRefetch } from '../queries.js';

interface NewDeposit {
  readonly amount_micro_usd: number;
  readonly reference: string;
}

export function DepositDialog({ account, onClose }: { readonly account: AdminAccountView; readonly onClose: () => void }) {
  const [newDeposit, setNewDeposit] = useState<NewDeposit | null>(null);
  const toastAndRefetch = useToastAndRefetch();
  const form = useFormMutation({ amount: '', reference: '' }, async ({ amount, reference }) => {
    setNewDeposit({ amount_micro_usd: microUsdOf(amount), reference });
  });
  const name = account.email ?? account.name;
  if (newDeposit !== null) {
    const amount = formatUsd(newDeposit.amount_micro_usd);
    const deposit = async (): Promise<void> => {
      await api.post(`${accountPath(account.id)}/deposits`, newDeposit);
      await toastAndRefetch(`${amount} deposited`);
    };
    return (
      <ConfirmDialog
        onClose={onClose}
        title={`Deposit ${amount}?`}
        persistent
        errorTitle="The deposit failed."
        confirm={`Deposit ${amount}`}
        onBack={() => setNewDeposit(null)}
        onConfirm={deposit}
      >
        <p>
          {name} can spend the amount immediately. The deposit is posted as “{newDeposit.reference}”; each reference deposits once.
        </p>
      </ConfirmDialog>
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
