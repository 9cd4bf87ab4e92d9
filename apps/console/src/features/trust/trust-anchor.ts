/** The root that the certificates of this network end at, from its attestation feed. */
import type { AttestationFeed } from '@inference/protocol';
import { useQuery } from '@tanstack/react-query';
import { api } from '../../api/api-client.js';
import type { AnchorKind } from './verdicts.js';

/** No key has this provider ID, so the feed comes without records. */
const NO_PROVIDER = '0'.repeat(32);

/** Undefined while loading. */
export function useTrustAnchor(): AnchorKind | undefined {
  const { data, isError } = useQuery({
    queryKey: ['public', 'trust-anchor'],
    queryFn: ({ signal }) => api.get<AttestationFeed>('/v1/providers/attestation', { query: { provider_id: NO_PROVIDER }, signal }),
    select: ({ trust_anchor }): AnchorKind => (trust_anchor.simulated ? 'simulated' : 'apple'),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return data ?? (isError ? 'unknown' : undefined);
}
