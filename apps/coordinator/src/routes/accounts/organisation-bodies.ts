/** Response bodies for organisations and members, shared by the console API and the admin API. */
import type { AdminMember, ConsoleMember, ConsoleMembership } from '@inference/formats';
import type { Member, Membership } from '../../database/accounts/organisation-repository.js';
import { ROLE_PERMISSIONS } from '../../database/accounts/organisation-roles.js';
import { isoTime } from '../parameters/times.js';

export function membershipBody({ account, role }: Membership): ConsoleMembership {
  const { id, name, suspendedAt } = account;
  return { id, name, role, permissions: [...ROLE_PERMISSIONS[role]], suspended: suspendedAt !== null };
}

export function memberBody(member: Member): ConsoleMember {
  return { ...adminMemberBody(member), key_count: member.keyCount };
}

export function adminMemberBody({ userId, name, email, role, joinedAt }: Member): AdminMember {
  return { user_id: userId, name, email, role, joined_at: isoTime(joinedAt) };
}
