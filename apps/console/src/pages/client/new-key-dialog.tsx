/** Shows the text of a new key, this once. */
import type { ConsoleNewKey } from '@inference/formats';
import { PATHS } from '../../routing/paths.js';
import { Dialog, DialogActions } from '../../ui/dialogs/dialog.js';
import { Button } from '../../ui/forms/button.js';
import { CopyField } from '../../ui/forms/copy-field.js';
import { LinkButton } from '../../ui/navigation/link-button.js';

export function NewKeyDialog({ made, onClose }: { readonly made: ConsoleNewKey | null; readonly onClose: () => void }) {
  return (
    <Dialog
      open={made !== null}
      onOpenChange={(open) => (open ? undefined : onClose())}
      keepOpen
      title="Your new key"
      description="Copy the key now: it is shown only once and not stored. Anyone with the key can spend your balance."
    >
      {made === null ? null : <CopyField label="API key" value={made.secret} />}
      <DialogActions>
        <LinkButton href={PATHS.quickStart} kind="secondary">
          Quick start
        </LinkButton>
        <Button kind="primary" onClick={onClose}>
          Done
        </Button>
      </DialogActions>
    </Dialog>
  );
}
