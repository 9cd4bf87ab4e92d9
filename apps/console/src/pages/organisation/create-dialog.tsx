/** `CreateDialog`: creates an organisation and makes it the active account of this tab. */
import type { ConsoleMembership } from '@inference/formats';
import { api } from '../../api/api-client.js';
import { useRefreshSession, useSwitchAccount } from '../../api/session.js';
import { FormDialog } from '../../ui/dialogs/dialog.js';
import { useToast } from '../../ui/feedback/toast.js';
import { Field } from '../../ui/forms/field.js';
import { useFormMutation } from '../../ui/forms/form.js';

export const NAME_RULES = { required: 'Enter a name.', maxLength: { value: 100, message: 'At most 100 characters.' } };

export function CreateDialog({ onClose }: { readonly onClose: () => void }) {
  const refreshSession = useRefreshSession();
  const switchAccount = useSwitchAccount();
  const toast = useToast();
  const form = useFormMutation({ name: '' }, async ({ name }) => {
    const { id } = await api.post<ConsoleMembership>('/console/v1/organisations', { name: name.trim() });
    await refreshSession();
    onClose();
    switchAccount(id);
    toast.success(`${name.trim()} created`, 'This tab now shows the organisation.');
  });
  return (
    <FormDialog onClose={onClose} title="Create organisation" form={form} submit="Create organisation">
      <p>It has its own balance, API keys and machines. You are its owner and can invite others.</p>
      <Field label="Organisation name" autoComplete="organization" {...form.field('name', NAME_RULES)} />
    </FormDialog>
  );
}
