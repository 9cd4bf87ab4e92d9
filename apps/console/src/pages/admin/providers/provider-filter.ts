/** `filterProviders`: search and state filter for the connected machines on the operators' page. */
import type { AdminProvider } from '@inference/formats';

export const STATES = [
  { value: 'all', label: 'All' },
  { value: 'serving', label: 'Accepting requests' },
  { value: 'not_serving', label: 'Not accepting requests' },
  { value: 'held', label: 'Quarantined by an operator' },
  { value: 'troubled', label: 'With failures' },
] as const;
export type StateFilter = (typeof STATES)[number]['value'];

export function filterProviders(
  providers: readonly AdminProvider[],
  { text, state }: { readonly text: string; readonly state: StateFilter },
): readonly AdminProvider[] {
  const needle = text.trim().toLowerCase();
  return providers.filter((provider) => isInState(provider, state) && (needle === '' || textOf(provider).includes(needle)));
}

function isInState({ status, hold, reputation }: AdminProvider, state: StateFilter): boolean {
  switch (state) {
    case 'all':
      return true;
    case 'serving':
      return status === 'online';
    case 'not_serving':
      return status !== 'online';
    case 'held':
      return hold !== null;
    case 'troubled':
      return reputation.state !== 'well' || reputation.recent_failures > 0;
    default:
      return state satisfies never;
  }
}

function textOf({ provider_id, serial_number, models, agent }: AdminProvider): string {
  return [provider_id, serial_number, ...models, agent.name, agent.version].join('\n').toLowerCase();
}
