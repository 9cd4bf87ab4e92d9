/** Operator actions on a machine: quarantine, release, clear failures. */
import type { AdminProviderView } from '@inference/formats';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../../../api/api-client.js';
import { ConfirmDialog, Dialog, DialogActions } from '../../../ui/dialogs/dialog.js';
import { useToast } from '../../../ui/feedback/toast.js';
import { Button } from '../../../ui/forms/button.js';
import { Field } from '../../../ui/forms/field.js';
import { Form, useFormMutation } from '../../../ui/forms/form.js';
import { ADMIN_KEY, providerPath } from '../queries.js';

type OpenDialog = 'quarantine' | 'release' | 'reinstate' | null;

export function ProviderActions({ view }: { readonly view: AdminProviderView }) {
  const [dialog, setDialog] = useState<OpenDialog>(null);
  const toast = useToast();
  const queryClient = useQueryClient();
  const path = providerPath(view.provider_id);
  const close = (): void => setDialog(null);
  const changed = () => queryClient.invalidateQueries({ queryKey: ADMIN_KEY });
  const act = async (what: 'release' | 'reinstate', done: string): Promise<void> => {
    await api.post(`${path}/${what}`);
    toast.success(done);
    await changed();
  };
  return (
    <>
      {view.reputation.state === 'well' ? null : <Button onClick={() => setDialog('reinstate')}>Clear failures</Button>}
      {view.hold === null ? (
        <Button kind="danger" onClick={() => setDialog('quarantine')}>
          Quarantine
        </Button>
      ) : (
        <Button kind="primary" onClick={() => setDialog('release')}>
          Release
        </Button>
      )}
      {dialog === 'quarantine' ? (
        <QuarantineDialog
          onClose={close}
          onQuarantine={async (reason) => {
            await api.post(`${path}/quarantine`, { reason });
            toast.success('Machine quarantined');
            await changed();
          }}
        />
      ) : null}
      <ConfirmDialog
        open={dialog === 'release'}
        onOpenChange={close}
        title="Release this machine?"
        confirm="Release"
        onConfirm={() => act('release', 'Machine released')}
      >
        <p>The machine gets jobs again immediately if its trust and reputation allow. Its owner no longer sees the reason.</p>
      </ConfirmDialog>
      <ConfirmDialog
        open={dialog === 'reinstate'}
        onOpenChange={close}
        title="Clear the failures of this machine?"
        confirm="Clear failures"
        onConfirm={() => act('reinstate', 'Failures cleared')}
      >
        <p>The backoff ends immediately and past failures no longer count. Otherwise it ends after a successful job.</p>
      </ConfirmDialog>
    </>
  );
}

interface QuarantineDialogProps {
  readonly onClose: () => void;
  readonly onQuarantine: (reason: string) => Promise<void>;
}

const MAX_CHARACTERS = 300;

function QuarantineDialog({ onClose, onQuarantine }: QuarantineDialogProps) {
  const { register, errors, onSubmit, isPending, error } = useFormMutation({ reason: '' }, async ({ reason }) => {
    await onQuarantine(reason.trim());
    onClose();
  });
  return (
    <Dialog
      open
      onOpenChange={(open) => (open ? undefined : onClose())}
      title="Quarantine this machine?"
      description="The machine gets no new jobs until an operator releases it. Running jobs finish."
    >
      <Form onSubmit={onSubmit} error={error} errorTitle="The machine was not quarantined.">
        <Field
          label="Reason"
          hint="Shown to the owner of the machine. State what to do and whom to contact."
          autoComplete="off"
          error={errors.reason?.message}
          {...register('reason', {
            validate: (reason) => {
              if (reason.trim() === '') return 'Give a reason for the owner.';
              return reason.trim().length <= MAX_CHARACTERS || `At most ${MAX_CHARACTERS} characters.`;
            },
          })}
        />
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="danger" busy={isPending}>
            Quarantine
          </Button>
        </DialogActions>
      </Form>
    </Dialog>
  );
}
