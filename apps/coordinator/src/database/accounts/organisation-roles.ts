/** `ROLE_PERMISSIONS`: permissions of each role in an organisation, which the routes check. */

export type OrganisationRole = 'owner' | 'admin' | 'developer' | 'billing' | 'viewer';

export type Permission =
  | 'account.read'
  | 'account.export'
  | 'keys.write'
  | 'billing.read'
  | 'billing.write'
  | 'payouts.write'
  | 'machines.write'
  | 'organisation.manage'
  | 'organisation.delete';

/** Roles are displayed in this order. */
export const ROLE_PERMISSIONS: Readonly<Record<OrganisationRole, readonly Permission[]>> = {
  owner: [
    'account.read',
    'account.export',
    'keys.write',
    'billing.read',
    'billing.write',
    'payouts.write',
    'machines.write',
    'organisation.manage',
    'organisation.delete',
  ],
  admin: ['account.read', 'keys.write', 'billing.read', 'billing.write', 'machines.write', 'organisation.manage'],
  developer: ['account.read', 'keys.write'],
  billing: ['account.read', 'billing.read', 'billing.write'],
  viewer: ['account.read', 'billing.read'],
};

export function hasPermission(role: OrganisationRole, permission: Permission): boolean {
  return ROLE_PERMISSIONS[role].includes(permission);
}

/** Whether a member may grant or revoke these roles. Only owners may grant or revoke the role `owner`. `actor` null: not a member. */
export function mayManage(actor: OrganisationRole | null, ...roles: readonly OrganisationRole[]): boolean {
  if (actor === null || !hasPermission(actor, 'organisation.manage')) return false;
  return actor === 'owner' || !roles.includes('owner');
}

/** Position of a role in lists of members; 0 for `owner`. */
export function rankOf(role: OrganisationRole): number {
  return Object.keys(ROLE_PERMISSIONS).indexOf(role);
}
