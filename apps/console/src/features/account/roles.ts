/** Texts of the roles in an organisation and of their permissions. */
import type { OrganisationRole, Permission } from '@inference/formats';

export const ROLE_LABELS: Readonly<Record<OrganisationRole, string>> = {
  owner: 'Owner',
  admin: 'Admin',
  developer: 'Developer',
  billing: 'Billing',
  viewer: 'Viewer',
};

export const ROLE_DESCRIPTIONS: Readonly<Record<OrganisationRole, string>> = {
  owner: 'Everything, including withdrawals and deletion.',
  admin: 'Everything except withdrawals, owners and deletion.',
  developer: 'API keys and playground. Sees usage and balance.',
  billing: 'Credits and deposits. Sees usage and balance.',
  viewer: 'Sees everything, changes nothing.',
};

export const PERMISSION_LABELS: Readonly<Record<Permission, string>> = {
  'account.read': 'See usage, balance, keys, machines and members',
  'account.export': 'Download all data of the organisation',
  'keys.write': 'Manage API keys, use the playground',
  'billing.read': 'See deposits and withdrawals',
  'billing.write': 'Add credits, set the low-balance alert',
  'payouts.write': 'Withdraw earnings',
  'machines.write': 'Link and remove machines',
  'organisation.manage': 'Manage members, name and log',
  'organisation.delete': 'Delete the organisation',
};

/** Roles that an owner or admin with `role` may give to others. */
export function rolesGivenBy(role: OrganisationRole): readonly OrganisationRole[] {
  const roles = Object.keys(ROLE_LABELS) as OrganisationRole[];
  return role === 'owner' ? roles : roles.filter((given) => given !== 'owner');
}
