/** Steps of a new account to its first verified response. */
import type { ConsoleSettings } from '@inference/formats';
import { depositAction, depositAdvice } from './deposit-texts.js';

interface FirstStepsFacts {
  readonly balanceMicroUsd: number;
  /** Whether the newest deposit was paid. */
  readonly deposited: boolean;
  readonly keys: number;
  /** Whether any request was completed. */
  readonly used: boolean;
  readonly depositMethods: ConsoleSettings['deposits'];
}

export interface FirstStep {
  readonly id: 'deposit' | 'answer' | 'key';
  readonly title: string;
  readonly text: string;
  readonly href: string;
  readonly action: string;
  readonly done: boolean;
}

/** Steps in recommended order. */
export function firstSteps({ balanceMicroUsd, deposited, keys, used, depositMethods }: FirstStepsFacts): FirstStep[] {
  return [
    {
      id: 'deposit',
      title: 'Get credits',
      text: `${depositAdvice(depositMethods)}. Requests are charged to your balance; a typical response costs less than a cent.`,
      href: '/balance',
      action: depositAction(depositMethods),
      done: deposited || balanceMicroUsd > 0,
    },
    {
      id: 'answer',
      title: 'Get a verified response',
      text: 'Ask a model in the playground. Your browser verifies the signature of the machine that responded.',
      href: '/playground',
      action: 'Open the playground',
      done: used,
    },
    {
      id: 'key',
      title: 'Use the API',
      text: 'Create an API key and copy a first request in your language.',
      href: '/quick-start',
      action: 'Create a key',
      done: keys > 0,
    },
  ];
}

/** First open step; null if all are done. */
export function nextStep(steps: readonly FirstStep[]): FirstStep | null {
  return steps.find(({ done }) => !done) ?? null;
}
