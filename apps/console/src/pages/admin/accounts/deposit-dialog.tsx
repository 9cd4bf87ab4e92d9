/** Adds a deposit: amount and reference, then a confirmation. Each reference deposits once. */
import type { AdminAccountView } from '@inference/formats';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useForm } from 'react-hook-form';
import { api } from '../../../api/api-client.js';
import { parseUsd } from '../../../features/account/usd-amount.js';
import { Dialog, DialogActions } from '../../../ui/dialogs/dialog.js';
import { formatUsd } from '../../../ui/display/figures.js';
import { ErrorNote } from '../../../ui/feedback/error-state.js';
import { useToast } from '../../../ui/feedback/toast.js';
import { Button } from '../../../ui/forms/button.js';
import { Field } from '../../../ui/forms/field.js';
import { Form } from '../../../ui/forms/form.js';
import { ADMIN_KEY, accountPath } from '../queries.js';

interface DepositForm {
  readonly amount: string;
  readonly reference: string;
}

interface NewDeposit {
  readonly amount_micro_usd: number;
  readonly reference: string;
}

export function DepositDialog({ account, onClose }: { readonly account: AdminAccountView; readonly onClose: () => void }) {
  const [newDeposit, setNewDeposit] = useState<NewDeposit | null>(null);
  const toast = useToast();
  const queryClient = useQueryClient();
  const { register, handleSubmit, formState } = useForm<DepositForm>({ defaultValues: { amount: '', reference: '' } });
  const name = account.email ?? account.name;
  const deposit = useMutation({
    mutationFn: async (body: NewDeposit) => {
      await api.post(`${accountPath(account.id)}/deposits`, body);
      toast.success(`${formatUsd(body.amount_micro_usd)} deposited`);
      await queryClient.invalidateQueries({ queryKey: ADMIN_KEY });
      onClose();
    },
  });
  if (newDeposit !== null) {
    return (
      <Dialog
        open
        onOpenChange={(open) => (open ? undefined : onClose())}
        title={`Deposit ${formatUsd(newDeposit.amount_micro_usd)}?`}
        persistent
      >
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
    <Dialog open onOpenChange={(open) => (open ? undefined : onClose())} title="Add deposit" description={`For ${name}.`}>
      <Form
        onSubmit={handleSubmit(({ amount, reference }) => {
          const typed = parseUsd(amount);
          if (typed.kind === 'amount') setNewDeposit({ amount_micro_usd: typed.microUsd, reference });
        })}
      >
        <Field
          label="Amount"
          inputMode="decimal"
          suffix="USD"
          autoComplete="off"
          error={formState.errors.amount?.message}
          {...register('amount', {
            validate: (amount) => {
              const typed = parseUsd(amount);
              return typed.kind === 'amount' || typed.problem;
            },
          })}
        />
        <Field
          label="Reference"
          hint="For example, an invoice number. Letters, digits, dots, dashes and underscores."
          autoComplete="off"
          error={formState.errors.reference?.message}
          {...register('reference', {
            pattern: { value: /^[A-Za-z0-9._-]{1,64}$/, message: 'A reference has 1 to 64 letters, digits, dots, dashes and underscores.' },
            required: 'Enter a reference. Each reference deposits once.',
          })}
        />
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary">
            Continue
          </Button>
        </DialogActions>
      </Form>
    </Dialog>
  );
}
