/** Adds money: through the payment service's own page, or of nothing where the coordinator runs in development mode. */
import type { ConsoleNewDeposit } from '@inference/formats';
import { useState } from 'react';
import { useForm } from 'react-hook-form';
import { api } from '../../api/api-client.js';
import { useSettings } from '../../api/session.js';
import { useMoneyChanged } from '../../features/account/balance.js';
import { readUsd } from '../../features/account/usd-amount.js';
import { Card } from '../../ui/display/card.js';
import { formatUsd } from '../../ui/display/money.js';
import { ErrorNote } from '../../ui/feedback/error-state.js';
import { Note } from '../../ui/feedback/note.js';
import { useToast } from '../../ui/feedback/toast.js';
import { Button } from '../../ui/forms/button.js';
import { Field } from '../../ui/forms/field.js';

const PRESETS = ['5', '20', '50'];

export function DepositCard() {
  const settings = useSettings();
  const moneyChanged = useMoneyChanged();
  const toast = useToast();
  const [busy, setBusy] = useState<'stripe' | 'development' | null>(null);
  const [problem, setProblem] = useState<unknown>(null);
  const { register, handleSubmit, formState, setValue } = useForm({ defaultValues: { amount: '10' } });
  if (settings === null) return null;
  const ways = settings.deposits;
  const min = settings.min_deposit_micro_usd;

  const pay = async (way: 'stripe' | 'development', text: string): Promise<void> => {
    const amount = readUsd(text);
    if (amount.kind === 'refused') return;
    setBusy(way);
    setProblem(null);
    try {
      const path = way === 'stripe' ? '/console/v1/deposits' : '/console/v1/deposits/development';
      const { deposit, checkout_url } = await api.post<ConsoleNewDeposit>(path, { amount_micro_usd: amount.microUsd });
      if (checkout_url !== null) {
        // The button stays busy: the browser is on its way to the payment service.
        window.location.assign(checkout_url);
        return;
      }
      await moneyChanged();
      toast.success(`${formatUsd(deposit.amount_micro_usd)} added`);
      setBusy(null);
    } catch (error) {
      setProblem(error);
      setBusy(null);
    }
  };
  const submitAs = (way: 'stripe' | 'development') => handleSubmit(({ amount }) => pay(way, amount));
  const [first] = ways;
  return (
    <Card title="Add money" about={ways.includes('stripe') ? 'You pay on the page of the payment service and come back here.' : undefined}>
      {first === undefined ? (
        <Note title="This coordinator takes no payments.">
          <p>Its operator can credit your account by hand.</p>
        </Note>
      ) : (
        <form className="form" noValidate onSubmit={(event) => void submitAs(first)(event)}>
          {problem === null ? null : <ErrorNote error={problem} />}
          <Field
            label="Amount in US dollars"
            inputMode="decimal"
            autoComplete="off"
            suffix="USD"
            error={formState.errors.amount?.message}
            {...register('amount', { validate: (text) => refusalOf(text, min) ?? true })}
          />
          <fieldset className="presets">
            <legend className="visually-hidden">Usual amounts</legend>
            {PRESETS.map((preset) => (
              <Button key={preset} size="small" onClick={() => setValue('amount', preset, { shouldValidate: true })}>
                {`$${preset}`}
              </Button>
            ))}
          </fieldset>
          <div className="button-row">
            {ways.includes('stripe') ? (
              <Button
                type={first === 'stripe' ? 'submit' : 'button'}
                kind="primary"
                busy={busy === 'stripe'}
                onClick={first === 'stripe' ? undefined : () => void submitAs('stripe')()}
              >
                Go to payment
              </Button>
            ) : null}
            {ways.includes('development') ? (
              <Button
                type={first === 'development' ? 'submit' : 'button'}
                kind={first === 'development' ? 'primary' : 'secondary'}
                busy={busy === 'development'}
                onClick={first === 'development' ? undefined : () => void submitAs('development')()}
              >
                Add play money
              </Button>
            ) : null}
          </div>
          {ways.includes('development') ? (
            <p className="field-hint">This coordinator runs in development mode: play money is made of nothing.</p>
          ) : null}
        </form>
      )}
    </Card>
  );
}

function refusalOf(text: string, min: number): string | null {
  const amount = readUsd(text);
  if (amount.kind === 'refused') return amount.problem;
  return amount.microUsd < min ? `At least ${formatUsd(min)}.` : null;
}
