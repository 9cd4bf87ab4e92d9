/** `AccountBadges`: badges for the state and kind of an account, and for operator access. */
import type { AdminAccount } from '@inference/formats';
import { Badge } from '../../../ui/display/page.js';

export function AccountBadges({ account }: { readonly account: AdminAccount }) {
  const { deleted_at, suspended_at, is_admin, is_organisation } = account;
  return (
    <span className="row">
      {deleted_at !== null ? (
        <Badge>Closed</Badge>
      ) : suspended_at !== null ? (
        <Badge tone="bad">Suspended</Badge>
      ) : (
        <Badge tone="good">Active</Badge>
      )}
      {is_organisation ? <Badge>Organisation</Badge> : null}
      {is_admin ? <Badge tone="accent">Operator</Badge> : null}
    </span>
  );
}
