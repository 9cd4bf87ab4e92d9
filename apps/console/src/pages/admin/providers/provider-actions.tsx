/** `ProviderActions`: buttons and dialogs for operators to quarantine or release a machine, and to clear its failures. */
import type { AdminProviderView } from '@inference/formats';
import { useState } from 'react';
import { api } from '../../../api/api-client.js';
import { ConfirmDialog, FormDialog } from '../../../ui/dialogs/dialog.js';
import { Button } from '../../../ui/forms/button.js';
import { Field } from '../../../ui/forms/field.js';
import { useFormMutation } from '../../../ui/forms/form.js';
import { providerPath, useToastAndRefetch } from '../queries.js';

type OpenDialog = 'quarantine' | 'release' | 'clear' | null;

export function ProviderActions({ view }: { readonly view: AdminProviderView }) {
  const [dialog, setDialog] = useState<OpenDialog>(null);
  const toastAndRefetch = useToastAndRefetch();
  const path = providerPath(view.provider_id);
  const close = (): void => setDialog(null);
  const act = async (action: 'release' | 'reinstate', done: string): Promise<void> => {
    await api.post(`${path}/${action}`);
    await toastAndRefetch(done);
  };
  return (
    <>
      {view.reputation.state === 'well' ? null : <Button onClick={() => setDialog('clear')}>Clear failures</Button>}
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
            await toastAndRefetch('Machine quarantined');
          }}
        />
      ) : null}
      <ConfirmDialog
        open={dialog === 'release'}
        onClose={close}
        title="Release this machine?"
        confirm="Release"
        onConfirm={() => act('release', 'Machine released')}
      >
        <p>
          The machine gets jobs again immediately unless trust or reputation prevents it. Its owner no longer sees the reason for the
          quarantine.
        </p>
      </ConfirmDialog>
      <ConfirmDialog
        open={dialog === 'clear'}
        onClose={close}
        title="Clear the failures of this machine?"
        confirm="Clear failures"
        onConfirm={() => act('reinstate', 'Failures cleared')}
      >
        <p>
          The restriction ends immediately and past failures no longer count. Otherwise it ends when its time has passed and a job has
          succeeded.
        </p>
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
  const form = useFormMutation({ reason: '' }, async ({ reason }) => {
    await onQuarantine(reason.trim());
    onClose();
  });
  return (
    <FormDialog
      onClose={onClose}
      title="Quarantine this machine?"
      description="The machine gets no new jobs until an operator releases it. Running jobs finish."
      form={form}
      errorTitle="The machine was not quarantined."
      submit="Quarantine"
      danger
    >
      <Field
        label="Reason"
        hint="Shown to the owner of the machine. State what to do and whom to contact."
        autoComplete="off"
        {...form.field('reason', {
          validate: (reason) => {
            if (reason.trim() === '') return 'Give a reason for the owner.';
            return reason.trim().length <= MAX_CHARACTERS || `At most ${MAX_CHARACTERS} characters.`;
          },
        })}
      />
    </FormDialog>
  );
}
