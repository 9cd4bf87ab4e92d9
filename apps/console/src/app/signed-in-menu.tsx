/** `SignedInMenu`: account switcher and sign-out. Loaded separately, because visitors do not need the large menu library. */
import { Menu } from '@base-ui/react/menu';
import type { ConsoleMe } from '@inference/formats';
import { Check, LogOut, Plus } from 'lucide-react';
import { type ReactNode, useRef } from 'react';
import { useLocation } from 'wouter';
import { useOrganisationOf, useSwitchAccount } from '../api/session.js';
import { ROLE_LABELS } from '../features/account/roles.js';
import { PATHS } from '../routing/paths.js';
import { useSignOut } from './sign-out.js';

interface SignedInMenuProps {
  readonly me: ConsoleMe;
  /** Name of the active account. */
  readonly name: string;
  readonly compact: boolean;
  /** Content of the button. */
  readonly children: ReactNode;
}

export function SignedInMenu({ me, name, compact, children }: SignedInMenuProps) {
  const container = useRef<HTMLDivElement>(null);
  const [, navigate] = useLocation();
  const organisation = useOrganisationOf(me);
  const switchAccount = useSwitchAccount();
  const signOut = useSignOut();
  return (
    <div ref={container}>
      <Menu.Root>
        <Menu.Trigger
          className={compact ? 'icon-button account-compact' : 'account-trigger'}
          aria-label={compact ? `Account of ${name}` : undefined}
        >
          {children}
        </Menu.Trigger>
        {/* Portal inside the landmark of the button, for users who navigate by landmarks. */}
        <Menu.Portal container={container}>
          <Menu.Positioner className="menu-positioner" positionMethod="fixed" sideOffset={6} align="end">
            <Menu.Popup className="menu">
              <Menu.Group>
                <Menu.GroupLabel className="menu-about">
                  <strong>{me.name}</strong>
                  <span>{me.email}</span>
                </Menu.GroupLabel>
              </Menu.Group>
              {me.organisations.length === 0 ? null : (
                <Menu.RadioGroup
                  aria-label="Account of this tab"
                  className="menu-accounts"
                  value={organisation?.id ?? PERSONAL}
                  onValueChange={(id: string) => switchAccount(id === PERSONAL ? null : id)}
                >
                  <AccountItem value={PERSONAL} name={me.name} about="Personal account" />
                  {me.organisations.map(({ id, name: organisationName, role, suspended }) => (
                    <AccountItem
                      key={id}
                      value={id}
                      name={organisationName}
                      about={suspended ? 'Suspended' : ROLE_LABELS[role]}
                      disabled={suspended}
                    />
                  ))}
                </Menu.RadioGroup>
              )}
              <Menu.Group>
                <Menu.Item className="menu-item" onClick={() => navigate(`${PATHS.organisation}?new`)}>
                  <Plus size={16} aria-hidden="true" /> Create organisation
                </Menu.Item>
                <Menu.Item className="menu-item" disabled={signOut.isPending} onClick={() => signOut.mutate()}>
                  <LogOut size={16} aria-hidden="true" /> Sign out
                </Menu.Item>
              </Menu.Group>
            </Menu.Popup>
          </Menu.Positioner>
        </Menu.Portal>
      </Menu.Root>
    </div>
  );
}

/** Value of the personal account in the switcher. */
const PERSONAL = 'personal';

interface AccountItemProps {
  readonly value: string;
  readonly name: string;
  readonly about: string;
  readonly disabled?: boolean;
}

function AccountItem({ value, name, about, disabled = false }: AccountItemProps) {
  return (
    <Menu.RadioItem className="menu-item menu-account" value={value} disabled={disabled} closeOnClick>
      <span className="menu-account-names">
        <span className="account-name">{name}</span>
        <span className="small muted">{about}</span>
      </span>
      <Menu.RadioItemIndicator>
        <Check size={16} aria-hidden="true" />
      </Menu.RadioItemIndicator>
    </Menu.RadioItem>
  );
}
