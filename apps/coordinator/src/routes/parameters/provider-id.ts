/** Ids of providers in addresses. */
import { RequestError } from '@inference/formats';
import { type ProviderId, ProviderIdSchema } from '@inference/protocol';
import { Compile } from 'typebox/compile';

const providerId = Compile(ProviderIdSchema);

/** Throws RequestError for what can be the id of no provider. */
export function parseProviderId(text: string): ProviderId {
  if (providerId.Check(text)) return text;
  throw new RequestError('invalid_request', 'provider_id', 'provider_id must be the id of a provider.');
}
