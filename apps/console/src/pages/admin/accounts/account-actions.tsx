/** Suspending an account, the admin flag, and a deposit by hand. Each asks before it is done. */
import type { AdminAccountView } from '@inference/formats';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../../../api/api-client.js';
import { useMe } from '../../../api/session.js';
import { ConfirmDialog } from '../../../ui/dialogs/confirm-dialog.js';
import { useToast } from '../../../ui/feedback/toast.js';
import { Button } from '../../../ui/forms/button.js';
import { ADMIN, accountPath } from '../queries.js';
import { DepositDialog } from './deposit-dialog.js';

type Asked = 'deposit' | 'suspended' | 'is_admin' | null;

export function AccountActions({ account }: { readonly account: AdminAccountView }) {
  const [asked, setAsked] = useState<Asked>(null);
  const me = useMe();
  const toast = useToast();
  const queryClient = useQueryClient();
  if (account.deleted_at !== null) return null;
  const close = (): void => setAsked(null);
  const change = async (changes: { readonly suspended?: boolean; readonly is_admin?: boolean }, done: string): Promise<void> => {
    await api.patch(accountPath(account.id), changes);
    toast.success(done);
    await queryClient.invalidateQueries({ queryKey: ADMIN });
  };
  const isSuspended = account.suspended_at !== null;
  const name = account.email ?? account.name;
  return (
    <>
      <Button onClick={() => setAsked('deposit')}>Deposit by hand</Button>
      <Button disabled={account.id === me.id} onClick={() => setAsked('is_admin')}>
        {account.is_admin ? 'Take the admin flag' : 'Give the admin flag'}
      </Button>
      <Button kind={isSuspended ? 'primary' : 'danger'} disabled={account.id === me.id} onClick={() => setAsked('suspended')}>
        {isSuspended ? 'Reinstate' : 'Suspend'}
      </Button>
      {asked === 'deposit' ? <DepositDialog account={account} onClose={close} /> : null}
      <ConfirmDialog
        open={asked === 'suspended'}
        onOpenChange={close}
        title={isSuspended ? `Reinstate ${name}?` : `Suspend ${name}?`}
        confirm={isSuspended ? 'Reinstate' : 'Suspend'}
        onConfirm={() => change({ suspended: !isSuspended }, isSuspended ? 'The account is open again' : 'The account is suspended')}
      >
        <p>
          {isSuspended
            ? 'Its keys and sessions open what they did before.'
            : 'Its keys answer 403 and its sessions open nothing, from now on. What it has stays as it is.'}
        </p>
      </ConfirmDialog>
      <ConfirmDialog
        open={asked === 'is_admin'}
        onOpenChange={close}
        title={account.is_admin ? `Take the admin flag from ${name}?` : `Make ${name} an operator?`}
        confirm={account.is_admin ? 'Take it' : 'Make an operator'}
        onConfirm={() => change({ is_admin: !account.is_admin }, account.is_admin ? 'The flag is taken' : 'The account is an operator’s')}
      >
        <p>
          {account.is_admin
            ? 'It sees and changes nothing of the operators’ any more.'
            : 'It may set prices, move money, suspend accounts and hold machines back, as you may. Everything is written down.'}
        </p>
      </ConfirmDialog>
    </>
  );
}
