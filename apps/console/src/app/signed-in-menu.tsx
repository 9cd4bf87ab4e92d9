/** Menu of the signed-in account. A module of its own: the menu library is a sixth of the shell, and visitors do not need it. */
import { Menu } from '@base-ui/react/menu';
import { useMutation } from '@tanstack/react-query';
import { LogOut } from 'lucide-react';
import { type ReactNode, useRef } from 'react';
import { useLocation } from 'wouter';
import { api } from '../api/api-client.js';
import { useRefreshSession } from '../api/session.js';
import { KEPT_CONVERSATION } from '../api/tab-storage.js';
import { PATHS } from '../routing/paths.js';
import { useToast } from '../ui/feedback/toast.js';

interface SignedInMenuProps {
  readonly name: string;
  readonly email: string;
  readonly compact: boolean;
  /** Content of the button. */
  readonly children: ReactNode;
}

export function SignedInMenu({ name, email, compact, children }: SignedInMenuProps) {
  const container = useRef<HTMLDivElement>(null);
  const [, navigate] = useLocation();
  const changed = useRefreshSession();
  const toast = useToast();
  const signOut = useMutation({
    mutationFn: async () => {
      // Open playgrounds end with the session. If this request fails, their keys expire within the hour.
      await api.delete('/console/v1/playground-key').catch(() => {});
      await api.post('/console/auth/sign-out');
      window.sessionStorage.removeItem(KEPT_CONVERSATION);
      await changed();
      navigate(PATHS.home);
    },
    onError: (error) => toast.failure('You are still signed in', error),
  });
  return (
    <div ref={container}>
      <Menu.Root>
        <Menu.Trigger className={compact ? 'icon-button' : 'account-trigger'} aria-label={compact ? `Account of ${name}` : undefined}>
          {children}
        </Menu.Trigger>
        {/* Portal inside the landmark of the button, for users who navigate by landmarks. */}
        <Menu.Portal container={container}>
          <Menu.Positioner className="menu-positioner" positionMethod="fixed" sideOffset={6} align="end">
            <Menu.Popup className="menu">
              <Menu.Group>
                <Menu.GroupLabel className="menu-about">
                  <strong>{name}</strong>
                  <span>{email}</span>
                </Menu.GroupLabel>
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
