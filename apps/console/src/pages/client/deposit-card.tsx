/** `DepositCard`: adds credits through the checkout page of the payment service, or test funds in development mode. */
import type { ConsoleNewDeposit } from '@inference/formats';
import { useMutation } from '@tanstack/react-query';
import { useForm } from 'react-hook-form';
import { api } from '../../api/api-client.js';
import { useSettings } from '../../api/session.js';
import { useInvalidateBilling } from '../../features/account/balance.js';
import { checkUsd, microUsdOf } from '../../features/account/usd-amount.js';
import { UsdField } from '../../features/account/usd-field.js';
import { formatUsd } from '../../ui/display/figures.js';
import { Card } from '../../ui/display/page.js';
import { Note } from '../../ui/feedback/note.js';
import { useToast } from '../../ui/feedback/toast.js';
import { Button } from '../../ui/forms/button.js';
import { Form } from '../../ui/forms/form.js';

const PRESETS = ['5', '20', '50'];

type DepositMethod = 'stripe' | 'development';
interface DepositRequest {
  readonly method: DepositMethod;
  readonly amountMicroUsd: number;
}

const DEPOSIT_PATHS: Readonly<Record<DepositMethod, string>> = {
  stripe: '/console/v1/deposits',
  development: '/console/v1/deposits/development',
};

export function DepositCard() {
  const settings = useSettings();
  const invalidateBilling = useInvalidateBilling();
  const toast = useToast();
  const { register, handleSubmit, formState, setValue } = useForm({ defaultValues: { amount: '10' } });
  const deposit = useMutation({
    mutationFn: async ({ method, amountMicroUsd }: DepositRequest) => {
      const created = await api.post<ConsoleNewDeposit>(DEPOSIT_PATHS[method], { amount_micro_usd: amountMicroUsd });
      if (created.checkout_url === null) await invalidateBilling();
      else window.location.assign(created.checkout_url);
      return created;
    },
    onSuccess: ({ deposit: { amount_micro_usd }, checkout_url }) => {
      if (checkout_url === null) toast.success(`${formatUsd(amount_micro_usd)} added`);
    },
  });
  if (settings === null) return null;
  const methods = settings.deposits;
  const min = settings.min_deposit_micro_usd;
  // While the browser leaves for the payment service, the button stays busy.
  const isBusy = (method: DepositMethod): boolean =>
    deposit.variables?.method === method && (deposit.isPending || (deposit.data?.checkout_url ?? null) !== null);
  const submitWith = (method: DepositMethod) =>
    handleSubmit(({ amount }) => {
      deposit.mutate({ method, amountMicroUsd: microUsdOf(amount) });
    });
  const [first] = methods;
  return (
    <Card
      title="Add credits"
      about={methods.includes('stripe') ? 'You pay on the page of the payment service and return here.' : undefined}
    >
      {first === undefined ? (
        <Note title="This coordinator does not accept payments.">
          <p>Its operator can add a deposit to your account.</p>
        </Note>
      ) : (
        <Form onSubmit={submitWith(first)} error={deposit.error}>
          <UsdField
            label="Amount in US dollars"
            error={formState.errors.amount?.message}
            {...register('amount', { validate: (text) => checkUsd(text, { min }) })}
          />
          <fieldset className="presets">
            <legend className="visually-hidden">Preset amounts</legend>
            {PRESETS.map((preset) => (
              <Button key={preset} size="small" onClick={() => setValue('amount', preset, { shouldValidate: true })}>
                {`$${preset}`}
              </Button>
            ))}
          </fieldset>
          <div className="row">
            {methods.map((method) => (
              <Button
                key={method}
                type={method === first ? 'submit' : 'button'}
                kind={method === first ? 'primary' : 'secondary'}
                busy={isBusy(method)}
                onClick={method === first ? undefined : () => void submitWith(method)()}
              >
                {method === 'stripe' ? 'Continue to payment' : 'Add test funds'}
              </Button>
            ))}
          </div>
          {methods.includes('development') ? (
            <p className="field-hint">This coordinator runs in development mode: test funds are not real money.</p>
          ) : null}
        </Form>
      )}
    </Card>
  );
}
