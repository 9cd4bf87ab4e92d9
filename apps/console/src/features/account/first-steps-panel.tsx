/** `FirstSteps`: checklist of a new account: credits, a verified response, an API key. `WithFirstSteps` places it above a page's content. */
import './first-steps.css';
import type { ConsoleDepositPage, ConsoleKeyPage, ConsoleNewDeposit, ConsoleUsagePage, Permission } from '@inference/formats';
import { useMutation, useQuery } from '@tanstack/react-query';
import { Check } from 'lucide-react';
import type { ReactNode } from 'react';
import { api } from '../../api/api-client.js';
import { useActiveAccount, useSettings } from '../../api/session.js';
import { formatUsd } from '../../ui/display/figures.js';
import { Card } from '../../ui/display/page.js';
import { Skeleton } from '../../ui/feedback/placeholders.js';
import { useToast } from '../../ui/feedback/toast.js';
import { Button, LinkButton } from '../../ui/forms/button.js';
import { BILLING_QUERY_KEY, useBalance, useInvalidateBilling } from './balance.js';
import { type FirstStep, firstSteps, nextStep } from './first-steps.js';

/** Amount that one click adds in development mode. */
const TEST_FUNDS_MICRO_USD = 10_000_000;

/** Permissions that the steps need in an organisation. */
const STEP_PERMISSIONS: readonly Permission[] = ['keys.write', 'billing.read', 'billing.write'];

/** All steps while one is open. Null: all are done, the role lacks permissions, or reading failed. Undefined: loading. */
export function useFirstSteps(): readonly FirstStep[] | null | undefined {
  const settings = useSettings();
  const { data: balance, isError: isBalanceError } = useBalance();
  const { organisation } = useActiveAccount();
  const isApplicable = STEP_PERMISSIONS.every((permission) => organisation === null || organisation.permissions.includes(permission));
  const { data: facts, isError } = useQuery({
    queryKey: [...BILLING_QUERY_KEY, 'first-steps'],
    enabled: isApplicable,
    queryFn: async ({ signal }) => {
      const options = { query: { limit: 1 }, signal };
      const [keys, usage, deposits] = await Promise.all([
        api.get<ConsoleKeyPage>('/console/v1/keys', options),
        api.get<ConsoleUsagePage>('/console/v1/usage', options),
        api.get<ConsoleDepositPage>('/console/v1/deposits', options),
      ]);
      return { keys: keys.data.length, used: usage.data.length > 0, deposited: deposits.data.some(({ state }) => state === 'paid') };
    },
  });
  if (!isApplicable || isError || (isBalanceError && balance === undefined)) return null;
  if (balance === undefined || facts === undefined || settings === null) return undefined;
  const steps = firstSteps({ ...facts, balanceMicroUsd: balance.balance_micro_usd, depositMethods: settings.deposits });
  return nextStep(steps) === null ? null : steps;
}

/** Creates an API key for the step "Use the API", which otherwise links to the quick start. */
export interface KeyAction {
  readonly busy: boolean;
  readonly create: () => void;
}

interface WithFirstStepsProps {
  readonly keyAction?: KeyAction;
  readonly children: ReactNode;
}

/** Shows the checklist above `children`. Renders a placeholder until the checklist is known, so that the layout does not shift. */
export function WithFirstSteps({ keyAction, children }: WithFirstStepsProps) {
  const steps = useFirstSteps();
  if (steps === undefined) return <Skeleton height="32rem" />;
  return (
    <>
      {steps === null ? null : <FirstSteps steps={steps} {...(keyAction === undefined ? {} : { keyAction })} />}
      {children}
    </>
  );
}

interface FirstStepsProps {
  readonly steps: readonly FirstStep[];
  readonly keyAction?: KeyAction;
}

export function FirstSteps({ steps, keyAction }: FirstStepsProps) {
  const next = nextStep(steps);
  return (
    <Card title="First steps" about="Get your first verified response in about a minute.">
      <ol className="first-steps">
        {steps.map((step, index) => (
          <li key={step.id} className="step" data-state={step.done ? 'done' : step === next ? 'next' : 'later'}>
            <span className="step-mark" aria-hidden="true">
              {step.done ? <Check size={16} /> : index + 1}
            </span>
            <div className="step-text">
              <strong>{step.title}</strong>
              {step.done ? <span className="visually-hidden"> (done)</span> : null}
              <p>{step.text}</p>
            </div>
            {step.done ? null : <StepAction step={step} next={step === next} keyAction={keyAction} />}
          </li>
        ))}
      </ol>
    </Card>
  );
}

interface StepActionProps {
  readonly step: FirstStep;
  readonly next: boolean;
  readonly keyAction: KeyAction | undefined;
}

function StepAction({ step, next, keyAction }: StepActionProps) {
  const settings = useSettings();
  const kind = next ? 'primary' : 'secondary';
  if (step.id === 'deposit' && settings?.deposits.includes('development')) return <AddTestFunds kind={kind} />;
  if (step.id === 'key' && keyAction !== undefined) {
    return (
      <Button kind={kind} size="small" busy={keyAction.busy} onClick={keyAction.create}>
        {step.action}
      </Button>
    );
  }
  return (
    <LinkButton href={step.href} kind={kind} size="small">
      {step.action}
    </LinkButton>
  );
}

function AddTestFunds({ kind }: { readonly kind: 'primary' | 'secondary' }) {
  const invalidateBilling = useInvalidateBilling();
  const toast = useToast();
  const { mutate, isPending } = useMutation({
    mutationFn: async () => {
      await api.post<ConsoleNewDeposit>('/console/v1/deposits/development', { amount_micro_usd: TEST_FUNDS_MICRO_USD });
      await invalidateBilling();
    },
    onSuccess: () => toast.success(`${formatUsd(TEST_FUNDS_MICRO_USD)} added`),
    onError: (error) => toast.failure('No test funds were added', error),
  });
  return (
    <Button kind={kind} size="small" busy={isPending} onClick={() => mutate()}>
      {`Add ${formatUsd(TEST_FUNDS_MICRO_USD)} in test funds`}
    </Button>
  );
}
