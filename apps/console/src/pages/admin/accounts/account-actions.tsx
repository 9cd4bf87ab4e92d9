/**
 * `AccountActions`: buttons for operators on the page of an account: deposit, two-factor reset, operator access, suspension, data export
 * and deletion. Every change asks for confirmation.
 */
import type { AdminAccountView } from '@inference/formats';
import { useState } from 'react';
import { api } from '../../../api/api-client.js';
import { useMe } from '../../../api/session.js';
import { DeletionNote } from '../../../features/account/deletion-note.js';
import { ConfirmDialog } from '../../../ui/dialogs/dialog.js';
import { formatUsd } from '../../../ui/display/figures.js';
import { Button } from '../../../ui/forms/button.js';
import { DownloadLink } from '../../../ui/forms/download-link.js';
import { accountPath, useToastAndRefetch } from '../queries.js';
import { DepositDialog } from './deposit-dialog.js';

type OpenDialog = 'deposit' | 'suspended' | 'is_admin' | 'two_factor' | 'delete' | null;

export function AccountActions({ account }: { readonly account: AdminAccountView }) {
  const [dialog, setDialog] = useState<OpenDialog>(null);
  const me = useMe();
  const toastAndRefetch = useToastAndRefetch();
  const download = (
    <DownloadLink href={`${accountPath(account.id)}/export`} fileName={`account-${account.id}.json`}>
      Download data
    </DownloadLink>
  );
  if (account.deleted_at !== null) return download;
  const close = (): void => setDialog(null);
  const change = async (changes: { readonly suspended?: boolean; readonly is_admin?: boolean }, done: string): Promise<void> => {
    await api.patch(accountPath(account.id), changes);
    await toastAndRefetch(done);
  };
  const isSuspended = account.suspended_at !== null;
  const name = account.email ?? account.name;
  return (
    <>
      <Button onClick={() => setDialog('deposit')}>Add deposit</Button>
      {account.two_factor_enabled ? <Button onClick={() => setDialog('two_factor')}>Disable two-factor</Button> : null}
      {account.is_organisation ? null : (
        <Button disabled={account.id === me.id} onClick={() => setDialog('is_admin')}>
          {account.is_admin ? 'Revoke operator access' : 'Grant operator access'}
        </Button>
      )}
      <Button kind={isSuspended ? 'primary' : 'danger'} disabled={account.id === me.id} onClick={() => setDialog('suspended')}>
        {isSuspended ? 'Unsuspend' : 'Suspend'}
      </Button>
      {download}
      <Button kind="danger" disabled={account.id === me.id} onClick={() => setDialog('delete')}>
        Delete account
      </Button>
      {dialog === 'deposit' ? <DepositDialog account={account} onClose={close} /> : null}
      <ConfirmDialog
        open={dialog === 'two_factor'}
        onClose={close}
        title={`Disable two-factor authentication of ${name}?`}
        confirm="Disable"
        onConfirm={async () => {
          await api.delete(`${accountPath(account.id)}/two-factor`);
          await toastAndRefetch('Two-factor authentication disabled');
        }}
      >
        <p>The account signs in with its password alone, and is informed by email. Verify the person's identity first.</p>
      </ConfirmDialog>
      <ConfirmDialog
        open={dialog === 'delete'}
        onClose={close}
        title={`Delete ${name}?`}
        confirm="Delete permanently"
        onConfirm={async () => {
          await api.delete(accountPath(account.id));
          await toastAndRefetch('Account deleted');
        }}
      >
        {account.balance_micro_usd > 0 ? (
          <p>
            The balance of <strong>{formatUsd(account.balance_micro_usd)}</strong> will be lost.
          </p>
        ) : null}
        <DeletionNote />
      </ConfirmDialog>
      <ConfirmDialog
        open={dialog === 'suspended'}
        onClose={close}
        title={isSuspended ? `Unsuspend ${name}?` : `Suspend ${name}?`}
        confirm={isSuspended ? 'Unsuspend' : 'Suspend'}
        onConfirm={() => change({ suspended: !isSuspended }, isSuspended ? 'Account unsuspended' : 'Account suspended')}
      >
        <p>
          {isSuspended
            ? 'Its keys and sessions work again.'
            : 'Requests with its keys and sessions are refused with status 403. Balance and machines are unchanged.'}
        </p>
      </ConfirmDialog>
      <ConfirmDialog
        open={dialog === 'is_admin'}
        onClose={close}
        title={account.is_admin ? `Revoke operator access of ${name}?` : `Grant operator access to ${name}?`}
        confirm={account.is_admin ? 'Revoke access' : 'Grant access'}
        onConfirm={() => change({ is_admin: !account.is_admin }, account.is_admin ? 'Operator access revoked' : 'Operator access granted')}
      >
        <p>
          {account.is_admin
            ? 'The account can no longer view or change anything under Admin.'
            : 'The account can set prices, move money, suspend accounts and quarantine machines. Every action is recorded in the audit log.'}
        </p>
      </ConfirmDialog>
    </>
  );
}
