/** Console API schemas: organisations, members, roles, invitations, and the log of members' actions. */
import Type, { type Static } from 'typebox';
import { count, name, nullable, page, requestBody, time } from './schema-parts.js';

/** Roles of members, from most to fewest permissions. */
export const ORGANISATION_ROLES = ['owner', 'admin', 'developer', 'billing', 'viewer'] as const;
export type OrganisationRole = (typeof ORGANISATION_ROLES)[number];

/** Permissions that roles grant. A personal account has all except `organisation.*`. */
export const PERMISSIONS = [
  'account.read',
  'account.export',
  'keys.write',
  'billing.read',
  'billing.write',
  'payouts.write',
  'machines.write',
  'organisation.manage',
  'organisation.delete',
] as const;
export type Permission = (typeof PERMISSIONS)[number];

const role = Type.Enum([...ORGANISATION_ROLES], { description: `one of ${ORGANISATION_ROLES.join(', ')}` });
const permission = Type.Enum([...PERMISSIONS]);

/** Request header with the id of the account to act for. Absent: the personal account. */
export const ACCOUNT_HEADER = 'x-account-id';

/** An organisation of which the signed-in person is a member. */
export const ConsoleMembershipSchema = Type.Object({
  id: Type.String(),
  name: Type.String(),
  role,
  permissions: Type.Array(permission),
  suspended: Type.Boolean(),
});
export type ConsoleMembership = Static<typeof ConsoleMembershipSchema>;

export const OrganisationNameSchema = requestBody({ name });

/** `GET /console/v1/organisation`. */
export const ConsoleOrganisationSchema = Type.Object({
  id: Type.String(),
  name: Type.String(),
  created_at: time,
  member_count: count,
  max_members: count,
  /** Role of the signed-in person. */
  role,
  roles: Type.Array(Type.Object({ role, permissions: Type.Array(permission) })),
});
export type ConsoleOrganisation = Static<typeof ConsoleOrganisationSchema>;

export const ConsoleMemberSchema = Type.Object({
  user_id: Type.String(),
  name: Type.String(),
  email: Type.String(),
  role,
  joined_at: time,
  /** Number of API keys that the member created and nobody revoked. */
  key_count: count,
});
export type ConsoleMember = Static<typeof ConsoleMemberSchema>;
export const ConsoleMemberListSchema = Type.Object({ data: Type.Array(ConsoleMemberSchema) });
export type ConsoleMemberList = Static<typeof ConsoleMemberListSchema>;

export const UpdateMemberSchema = requestBody({ role });

/** Response when a member was removed or left. */
export const ConsoleRemovedMemberSchema = Type.Object({ user_id: Type.String(), revoked_keys: count });
export type ConsoleRemovedMember = Static<typeof ConsoleRemovedMemberSchema>;

export const CreateInvitationSchema = requestBody({
  email: Type.String({ minLength: 3, maxLength: 254, pattern: '^[^\\s@]+@[^\\s@]+$', description: 'an e-mail address' }),
  role,
});

export const ConsoleInvitationSchema = Type.Object({
  id: Type.String(),
  email: Type.String(),
  role,
  /** Name of the member who sent the invitation; null for a former member. */
  invited_by: nullable(Type.String()),
  sent_at: time,
  expires_at: time,
  state: Type.Union([Type.Literal('pending'), Type.Literal('expired')]),
});
export type ConsoleInvitation = Static<typeof ConsoleInvitationSchema>;
export const ConsoleInvitationListSchema = Type.Object({ data: Type.Array(ConsoleInvitationSchema) });
export type ConsoleInvitationList = Static<typeof ConsoleInvitationListSchema>;

export const InvitationTokenSchema = requestBody({
  token: Type.String({ pattern: '^[A-Za-z0-9_-]{43}$', description: 'the token of an invitation link' }),
});

/** `POST /console/v1/invitations/view`: the invitation behind the link in a mail. */
export const ConsoleInvitationViewSchema = Type.Object({
  organisation_id: Type.String(),
  organisation_name: Type.String(),
  email: Type.String(),
  role,
  invited_by: nullable(Type.String()),
  expires_at: time,
  /** Whether the signed-in person has the e-mail address of the invitation. */
  is_recipient: Type.Boolean(),
});
export type ConsoleInvitationView = Static<typeof ConsoleInvitationViewSchema>;

export const ORGANISATION_ACTIONS = [
  'organisation.created',
  'organisation.renamed',
  'member.joined',
  'member.role_changed',
  'member.removed',
  'member.left',
  'invitation.sent',
  'invitation.resent',
  'invitation.revoked',
  'key.created',
  'key.changed',
  'key.revoked',
  'deposit.started',
  'billing_details.changed',
  'alert.changed',
  'withdrawal.requested',
  'payout_account.opened',
  'machine.linked',
  'machine.link_denied',
  'machine.renamed',
  'machine.unlinked',
  'machine.controlled',
] as const;
export type OrganisationAction = (typeof ORGANISATION_ACTIONS)[number];

export const ConsoleOrganisationEventSchema = Type.Object({
  id: Type.String(),
  at: time,
  /** Null for a deleted account. */
  actor: nullable(Type.Object({ user_id: Type.String(), name: Type.String(), email: Type.String() })),
  action: Type.Enum([...ORGANISATION_ACTIONS]),
  /** The affected e-mail address, key, machine or name. */
  subject: nullable(Type.String()),
  /** New role of a member or an invitation. */
  role: nullable(role),
});
export type ConsoleOrganisationEvent = Static<typeof ConsoleOrganisationEventSchema>;
export const ConsoleOrganisationLogSchema = page(ConsoleOrganisationEventSchema);

/** A member of an organisation, for operators. */
export const AdminMemberSchema = Type.Object({ user_id: Type.String(), name: Type.String(), email: Type.String(), role, joined_at: time });
export type AdminMember = Static<typeof AdminMemberSchema>;
