/** Chooses the candidates of a model: the providers that its requests are sealed to. */
import type { E2eCrypto, E2eKeysetProvider } from '@inference/protocol';
import { type Choice, MAX_CHOICE_PROVIDERS } from './store.js';

/** Orders providers by preference: earlier choices within `stickyFor`, then random ones weighted by capacity. Times in milliseconds. */
export function orderedCandidates(
  crypto: Pick<E2eCrypto, 'randomBytes'>,
  serving: readonly E2eKeysetProvider[],
  choice: Choice | null,
  { now, stickyFor }: { readonly now: number; readonly stickyFor: number },
): readonly E2eKeysetProvider[] {
  const chosenIds = choice !== null && now - choice.chosen_at < stickyFor ? choice.provider_ids : [];
  const chosen = chosenIds.flatMap((id) => serving.find(({ provider_id }) => provider_id === id) ?? []);
  const others = serving.filter((provider) => !chosen.includes(provider));
  return [...chosen, ...weightedShuffle(crypto, others)];
}

/** Returns the choice to store after a request to `used`. Earlier candidates keep their position while offline. */
export function nextChoice(
  model: string,
  before: Choice | null,
  used: readonly string[],
  { now, stickyFor }: { readonly now: number; readonly stickyFor: number },
): Choice {
  const isValid = before !== null && now - before.chosen_at < stickyFor;
  if (!isValid) return { model, provider_ids: used.slice(0, MAX_CHOICE_PROVIDERS), chosen_at: now };
  const added = used.filter((id) => !before.provider_ids.includes(id));
  // Earlier candidates are preferred, so the newest replacements are dropped first.
  return { ...before, provider_ids: [...before.provider_ids, ...added].slice(0, MAX_CHOICE_PROVIDERS) };
}

/** Returns a random order in which each next item is drawn with a probability proportional to its weight. */
function weightedShuffle(crypto: Pick<E2eCrypto, 'randomBytes'>, providers: readonly E2eKeysetProvider[]): E2eKeysetProvider[] {
  // Efraimidis and Spirakis (2006): the order of u^(1/w), as logarithms.
  const keyed = providers.map((provider) => ({ provider, key: Math.log(uniform(crypto)) / provider.weight }));
  return keyed.sort((a, b) => b.key - a.key).map(({ provider }) => provider);
}

/** Returns a uniform random number in (0, 1], with 48 random bits. */
function uniform(crypto: Pick<E2eCrypto, 'randomBytes'>): number {
  let value = 0;
  for (const byte of crypto.randomBytes(6)) value = value * 256 + byte;
  return (value + 1) / 2 ** 48;
}
