/** Taking a machine out of routing, letting it in again, and forgetting what its jobs came to. */
import type { AdminProviderView } from '@inference/formats';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useForm } from 'react-hook-form';
import { api } from '../../../api/api-client.js';
import { ConfirmDialog } from '../../../ui/dialogs/confirm-dialog.js';
import { Dialog, DialogActions } from '../../../ui/dialogs/dialog.js';
import { ErrorNote } from '../../../ui/feedback/error-state.js';
import { useToast } from '../../../ui/feedback/toast.js';
import { Button } from '../../../ui/forms/button.js';
import { Field } from '../../../ui/forms/field.js';
import { ADMIN, providerPath } from '../queries.js';

type Asked = 'quarantine' | 'release' | 'reinstate' | null;

export function ProviderActions({ view }: { readonly view: AdminProviderView }) {
  const [asked, setAsked] = useState<Asked>(null);
  const toast = useToast();
  const queryClient = useQueryClient();
  const path = providerPath(view.provider_id);
  const close = (): void => setAsked(null);
  const changed = () => queryClient.invalidateQueries({ queryKey: ADMIN });
  const act = async (what: 'release' | 'reinstate', done: string): Promise<void> => {
    await api.post(`${path}/${what}`);
    toast.success(done);
    await changed();
  };
  return (
    <>
      {view.reputation.state === 'well' ? null : <Button onClick={() => setAsked('reinstate')}>Forget its failures</Button>}
      {view.hold === null ? (
        <Button kind="danger" onClick={() => setAsked('quarantine')}>
          Quarantine
        </Button>
      ) : (
        <Button kind="primary" onClick={() => setAsked('release')}>
          Release
        </Button>
      )}
      {asked === 'quarantine' ? (
        <QuarantineDialog
          onClose={close}
          onQuarantine={async (reason) => {
            await api.post(`${path}/quarantine`, { reason });
            toast.success('The machine gets no more jobs');
            await changed();
          }}
        />
      ) : null}
      <ConfirmDialog
        open={asked === 'release'}
        onOpenChange={close}
        title="Release this machine?"
        confirm="Release"
        onConfirm={() => act('release', 'The machine may get jobs again')}
      >
        <p>It gets jobs again at once, where its trust and its record allow it. Its owner no longer reads the reason.</p>
      </ConfirmDialog>
      <ConfirmDialog
        open={asked === 'reinstate'}
        onOpenChange={close}
        title="Forget what its jobs came to?"
        confirm="Forget it"
        onConfirm={() => act('reinstate', 'Its failures are forgotten')}
      >
        <p>The pause ends now, and no failure counts any more. Without this it ends by itself, after a job that goes well.</p>
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
  const [problem, setProblem] = useState<unknown>(null);
  const { register, handleSubmit, formState } = useForm({ defaultValues: { reason: '' } });
  const quarantine = async ({ reason }: { reason: string }): Promise<void> => {
    setProblem(null);
    try {
      await onQuarantine(reason.trim());
      onClose();
    } catch (error) {
      setProblem(error);
    }
  };
  return (
    <Dialog
      open
      onOpenChange={(open) => (open ? undefined : onClose())}
      title="Quarantine this machine?"
      description="It gets no more jobs until an operator releases it. Jobs that run are finished."
    >
      <form className="form" noValidate onSubmit={(event) => void handleSubmit(quarantine)(event)}>
        {problem === null ? null : <ErrorNote error={problem} title="It was not quarantined." />}
        <Field
          label="Reason"
          hint="The owner of the machine reads it. Say what to do, and whom to ask."
          autoComplete="off"
          error={formState.errors.reason?.message}
          {...register('reason', {
            validate: (reason) => {
              if (reason.trim() === '') return 'Give a reason: the owner will ask.';
              return reason.trim().length <= MAX_CHARACTERS || `At most ${MAX_CHARACTERS} characters.`;
            },
          })}
        />
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="danger" busy={formState.isSubmitting}>
            Quarantine
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
