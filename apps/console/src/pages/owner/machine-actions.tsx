/** `MachineActions`: buttons and dialogs that rename or unlink a machine. */
import type { ConsoleMachineView } from '@inference/formats';
import { useQueryClient } from '@tanstack/react-query';
import { Pencil, Unlink } from 'lucide-react';
import { useState } from 'react';
import { useLocation } from 'wouter';
import { api } from '../../api/api-client.js';
import { PATHS } from '../../routing/paths.js';
import { ConfirmDialog, FormDialog } from '../../ui/dialogs/dialog.js';
import { useToast } from '../../ui/feedback/toast.js';
import { Button } from '../../ui/forms/button.js';
import { Field } from '../../ui/forms/field.js';
import { useFormMutation } from '../../ui/forms/form.js';
import { MACHINES_KEY, machineKey, machinePath } from './queries.js';

interface MachineActionsProps {
  readonly machine: ConsoleMachineView;
  readonly name: string;
}

const MAX_CHARACTERS = 64;

export function MachineActions({ machine, name }: MachineActionsProps) {
  const [renaming, setRenaming] = useState(false);
  const [unlinking, setUnlinking] = useState(false);
  return (
    <>
      <Button icon={<Pencil size={16} aria-hidden="true" />} onClick={() => setRenaming(true)}>
        Rename
      </Button>
      <Button icon={<Unlink size={16} aria-hidden="true" />} onClick={() => setUnlinking(true)}>
        Unlink
      </Button>
      {renaming ? <Rename machine={machine} onClose={() => setRenaming(false)} /> : null}
      <UnlinkDialog machine={machine} name={name} open={unlinking} onClose={() => setUnlinking(false)} />
    </>
  );
}

function Rename({ machine, onClose }: { readonly machine: ConsoleMachineView; readonly onClose: () => void }) {
  const queryClient = useQueryClient();
  const form = useFormMutation({ name: machine.name ?? '' }, async ({ name }) => {
    const body = { name: name.trim() === '' ? null : name.trim() };
    const renamed = await api.patch<ConsoleMachineView>(machinePath(machine.provider_id), body);
    queryClient.setQueryData(machineKey(machine.provider_id), renamed);
    await queryClient.invalidateQueries({ queryKey: [...MACHINES_KEY, 'list'] });
    onClose();
  });
  return (
    <FormDialog onClose={onClose} title="Rename the machine" form={form} submit="Save">
      <Field
        label="Name"
        hint="Visible only to you. Without a name, the chip is shown."
        autoComplete="off"
        {...form.field('name', {
          validate: (name) => name.trim().length <= MAX_CHARACTERS || `At most ${MAX_CHARACTERS} characters.`,
        })}
      />
    </FormDialog>
  );
}

interface UnlinkDialogProps extends MachineActionsProps {
  readonly open: boolean;
  readonly onClose: () => void;
}

function UnlinkDialog({ machine, name, open, onClose }: UnlinkDialogProps) {
  const queryClient = useQueryClient();
  const [, navigate] = useLocation();
  const toast = useToast();
  const unlink = async (): Promise<void> => {
    await api.delete(machinePath(machine.provider_id));
    navigate(PATHS.machines);
    toast.success(`${name} unlinked`);
    queryClient.removeQueries({ queryKey: machineKey(machine.provider_id) });
    await queryClient.invalidateQueries({ queryKey: MACHINES_KEY });
  };
  return (
    <ConfirmDialog open={open} onClose={onClose} title={`Unlink ${name}?`} confirm="Unlink" onConfirm={unlink}>
      <p>
        The machine stops earning for your account, and its token is revoked. Past earnings stay yours. To link the machine again, run
        “inference-provider login” on it.
      </p>
    </ConfirmDialog>
  );
}
