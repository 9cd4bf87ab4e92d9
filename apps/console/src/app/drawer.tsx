/** `Drawer`: navigation of narrow screens, in a dialog. Loaded separately, because wide screens do not need the dialog library. */
import { Dialog } from '@base-ui/react/dialog';
import { Menu as MenuIcon, X } from 'lucide-react';
import { useEffect, useState } from 'react';
import { useLocation } from 'wouter';
import { ThemeSwitch } from '../ui/theme/theme-switch.js';
import { Navigation } from './navigation.js';

export function Drawer() {
  const [open, setOpen] = useState(false);
  const [location] = useLocation();
  // biome-ignore lint/correctness/useExhaustiveDependencies: every navigation closes the drawer
  useEffect(() => setOpen(false), [location]);
  return (
    <Dialog.Root open={open} onOpenChange={setOpen}>
      <Dialog.Trigger className="icon-button" aria-label="Open the menu">
        <MenuIcon size={22} aria-hidden="true" />
      </Dialog.Trigger>
      <Dialog.Portal>
        <Dialog.Backdrop className="backdrop" />
        <Dialog.Popup className="drawer">
          <div className="drawer-head">
            <Dialog.Title className="drawer-title">Menu</Dialog.Title>
            <Dialog.Close className="icon-button" aria-label="Close the menu">
              <X size={22} aria-hidden="true" />
            </Dialog.Close>
          </div>
          <Navigation label="Menu" />
          <ThemeSwitch />
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
