/** A deposit by hand: amount and reference, then the question whether that is meant. The same reference deposits once. */
import type { AdminAccountView } from '@inference/formats';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useForm } from 'react-hook-form';
import { api } from '../../../api/api-client.js';
import { readUsd } from '../../../features/account/usd-amount.js';
import { Dialog, DialogActions } from '../../../ui/dialogs/dialog.js';
import { formatUsd } from '../../../ui/display/money.js';
import { ErrorNote } from '../../../ui/feedback/error-state.js';
import { useToast } from '../../../ui/feedback/toast.js';
import { Button } from '../../../ui/forms/button.js';
import { Field } from '../../../ui/forms/field.js';
import { ADMIN, accountPath } from '../queries.js';

interface DepositForm {
  readonly amount: string;
  readonly reference: string;
}

interface Meant {
  readonly amount_micro_usd: number;
  readonly reference: string;
}

export function DepositDialog({ account, onClose }: { readonly account: AdminAccountView; readonly onClose: () => void }) {
  const [meant, setMeant] = useState<Meant | null>(null);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);
  const toast = useToast();
  const queryClient = useQueryClient();
  const { register, handleSubmit, formState } = useForm<DepositForm>({ defaultValues: { amount: '', reference: '' } });
  const name = account.email ?? account.name;
  const deposit = async (body: Meant): Promise<void> => {
    setBusy(true);
    setProblem(null);
    try {
      await api.post(`${accountPath(account.id)}/deposits`, body);
      toast.success(`${formatUsd(body.amount_micro_usd)} deposited`);
      await queryClient.invalidateQueries({ queryKey: ADMIN });
      onClose();
    } catch (error) {
      setProblem(error);
    } finally {
      setBusy(false);
    }
  };
  if (meant !== null) {
    return (
      <Dialog open onOpenChange={(open) => (open ? undefined : onClose())} title={`Deposit ${formatUsd(meant.amount_micro_usd)}?`} keepOpen>
        <p>
          {name} gets it at once, and may spend it. It is posted as “{meant.reference}”; the same reference deposits once.
        </p>
        {problem === null ? null : <ErrorNote error={problem} title="It was not deposited." />}
        <DialogActions>
          <Button onClick={() => setMeant(null)}>Back</Button>
          <Button kind="danger" busy={busy} onClick={() => void deposit(meant)}>
            Deposit {formatUsd(meant.amount_micro_usd)}
          </Button>
        </DialogActions>
      </Dialog>
    );
  }
  return (
    <Dialog open onOpenChange={(open) => (open ? undefined : onClose())} title="Deposit by hand" description={`For ${name}.`}>
      <form
        className="form"
        noValidate
        onSubmit={(event) =>
          void handleSubmit(({ amount, reference }) => {
            const typed = readUsd(amount);
            if (typed.kind === 'amount') setMeant({ amount_micro_usd: typed.microUsd, reference });
          })(event)
        }
      >
        <Field
          label="Amount"
          inputMode="decimal"
          suffix="USD"
          autoComplete="off"
          error={formState.errors.amount?.message}
          {...register('amount', {
            validate: (amount) => {
              const typed = readUsd(amount);
              return typed.kind === 'amount' || typed.problem;
            },
          })}
        />
        <Field
          label="Reference"
          hint="Letters, digits, dots, dashes and underscores, such as the number of an invoice."
          autoComplete="off"
          error={formState.errors.reference?.message}
          {...register('reference', {
            pattern: { value: /^[A-Za-z0-9._-]{1,64}$/, message: 'A reference has 1 to 64 letters, digits, dots, dashes and underscores.' },
            required: 'Give a reference: the same one deposits once.',
          })}
        />
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary">
            Go on
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
