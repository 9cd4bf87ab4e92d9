/** Texts about adding credits, by the deposit methods that the coordinator offers. Pure. */
import type { ConsoleSettings } from '@inference/formats';

type Methods = ConsoleSettings['deposits'];

/** Label of a link to the balance page. */
export function depositAction(methods: Methods): string {
  if (methods.includes('stripe')) return 'Add credits';
  return methods.includes('development') ? 'Add test funds' : 'View balance';
}

/** One sentence on how this account gets credits. */
export function depositAdvice(methods: Methods): string {
  if (methods.includes('stripe')) return 'Add credits';
  return methods.includes('development') ? 'Add test funds' : 'Ask the operator of this coordinator to add credits';
}
