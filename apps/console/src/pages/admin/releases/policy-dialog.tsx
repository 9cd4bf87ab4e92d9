/** `PolicyButton`: button and dialog that change the rollout policy of agent versions. */
import type { RolloutPolicy } from '@inference/formats';
import { useState } from 'react';
import { api } from '../../../api/api-client.js';
import { FormDialog } from '../../../ui/dialogs/dialog.js';
import { Button } from '../../../ui/forms/button.js';
import { CheckField, Field, Select, TextAreaField } from '../../../ui/forms/field.js';
import { useFormMutation } from '../../../ui/forms/form.js';
import { useToastAndRefetch } from '../queries.js';
import { formatStages, parseStages } from './policy-stages.js';

const MODES = [
  { value: 'staged', label: 'In stages' },
  { value: 'immediate', label: 'To everyone at once' },
] as const;

export function PolicyButton({ policy }: { readonly policy: RolloutPolicy }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button size="small" onClick={() => setOpen(true)}>
        Change policy
      </Button>
      {isOpen ? <PolicyDialog policy={policy} onClose={() => setOpen(false)} /> : null}
    </>
  );
}

function PolicyDialog({ policy, onClose }: { readonly policy: RolloutPolicy; readonly onClose: () => void }) {
  const toastAndRefetch = useToastAndRefetch();
  const form = useFormMutation(
    {
      mode: policy.mode,
      stages: formatStages(policy.stages),
      networkPercent: String(policy.max_updating_network_percent),
      cohortPercent: String(policy.max_updating_cohort_percent),
      mayUpdateEarly: policy.owners_may_update_early,
      accounts: policy.canary_accounts.join('\n'),
    },
    async ({ mode, stages, networkPercent, cohortPercent, mayUpdateEarly, accounts }) => {
      const parsed = parseStages(stages);
      const body: RolloutPolicy = {
        mode,
        stages: typeof parsed === 'string' ? [] : parsed,
        max_updating_network_percent: Number(networkPercent),
        max_updating_cohort_percent: Number(cohortPercent),
        owners_may_update_early: mayUpdateEarly,
        canary_accounts: linesOf(accounts),
      };
      await api.put('/admin/v1/rollout-policy', body);
      await toastAndRefetch('Policy changed');
      onClose();
    },
  );
  const percentRule = { validate: (value: unknown) => isPercent(String(value)) || 'Enter a percentage from 0.1 to 100.' };
  return (
    <FormDialog onClose={onClose} title="Change policy" persistent form={form} errorTitle="The policy was not changed." submit="Save">
      <Select label="New versions are offered" options={MODES} {...form.register('mode')} />
      <TextAreaField
        label="Stages"
        hint="One per line: percent of machines, minimum minutes, minimum updated machines. The last stage has 100 percent."
        rows={5}
        spellCheck={false}
        {...form.field('stages', { validate: stagesRule })}
      />
      <Field
        label="Maximum share of the network's slots that update at once"
        suffix="%"
        inputMode="decimal"
        {...form.field('networkPercent', percentRule)}
      />
      <Field
        label="Maximum share of the slots of one model or chip family that update at once"
        suffix="%"
        inputMode="decimal"
        {...form.field('cohortPercent', percentRule)}
      />
      <CheckField label="Owners may update before their turn" {...form.register('mayUpdateEarly')} />
      <TextAreaField
        label="Accounts in the first stage"
        hint="One account ID per line. Empty: none."
        rows={2}
        spellCheck={false}
        {...form.field('accounts')}
      />
    </FormDialog>
  );
}

function stagesRule(value: unknown): true | string {
  const parsed = parseStages(String(value));
  return typeof parsed === 'string' ? parsed : true;
}

/** Distinct account ids of a text with one per line. */
function linesOf(text: string): string[] {
  return [...new Set(text.split('\n').map((line) => line.trim()))].filter((line) => line !== '');
}

function isPercent(text: string): boolean {
  return /^\d{1,3}(?:\.\d+)?$/.test(text) && Number(text) >= 0.1 && Number(text) <= 100;
}
