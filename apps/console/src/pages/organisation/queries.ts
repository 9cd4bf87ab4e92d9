/** Queries about the active organisation. */
import type { ConsoleInvitation, ConsoleInvitationList, ConsoleMember, ConsoleMemberList, ConsoleOrganisation } from '@inference/formats';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { api } from '../../api/api-client.js';

export const ORGANISATION_PATH = '/console/v1/organisation';
export const ORGANISATION_KEY = ['organisation'] as const;

export function useOrganisation() {
  return useQuery({
    queryKey: [...ORGANISATION_KEY, 'view'],
    queryFn: ({ signal }) => api.get<ConsoleOrganisation>(ORGANISATION_PATH, { signal }),
  });
}

export function useMembers() {
  return useQuery({
    queryKey: [...ORGANISATION_KEY, 'members'],
    queryFn: async ({ signal }): Promise<ConsoleMember[]> =>
      (await api.get<ConsoleMemberList>(`${ORGANISATION_PATH}/members`, { signal })).data,
  });
}

/** `enabled`: whether the role may see invitations. */
export function useInvitations(enabled = true) {
  return useQuery({
    enabled,
    queryKey: [...ORGANISATION_KEY, 'invitations'],
    queryFn: async ({ signal }): Promise<ConsoleInvitation[]> =>
      (await api.get<ConsoleInvitationList>(`${ORGANISATION_PATH}/invitations`, { signal })).data,
  });
}

export function useInvalidateOrganisation(): () => Promise<void> {
  const queryClient = useQueryClient();
  return () => queryClient.invalidateQueries({ queryKey: ORGANISATION_KEY });
}
