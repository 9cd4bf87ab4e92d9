/** `useTrustAnchor`: whether this network's certificates end at Apple's root or at a simulated root, from the attestation feed. */
import type { AttestationFeed } from '@inference/protocol';
import { useQuery } from '@tanstack/react-query';
import { api } from '../../api/api-client.js';
import type { AnchorKind } from './verdicts.js';

/** No provider has this id, so the response contains the anchor without any records. */
const NO_PROVIDER = '0'.repeat(32);

/** Undefined: loading. `unknown`: the feed could not be read. */
export function useTrustAnchor(): AnchorKind | undefined {
  const { data, isError } = useQuery({
    queryKey: ['public', 'trust-anchor'],
    queryFn: ({ signal }) => api.get<AttestationFeed>('/v1/providers/attestation', { query: { provider_id: NO_PROVIDER }, signal }),
    select: ({ trust_anchor }): AnchorKind => (trust_anchor.simulated ? 'simulated' : 'apple'),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return data ?? (isError ? 'unknown' : undefined);
}
