/** Sets a price: amounts, then a confirmation. */
import type { AdminPrice } from '@inference/formats';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useForm } from 'react-hook-form';
import { api } from '../../../api/api-client.js';
import { formatUsdInput, parseUsd } from '../../../features/account/usd-amount.js';
import { Dialog, DialogActions } from '../../../ui/dialogs/dialog.js';
import { formatUsd } from '../../../ui/display/figures.js';
import { ErrorNote } from '../../../ui/feedback/error-state.js';
import { useToast } from '../../../ui/feedback/toast.js';
import { Button } from '../../../ui/forms/button.js';
import { Field } from '../../../ui/forms/field.js';
import { Form } from '../../../ui/forms/form.js';
import { ADMIN_KEY, pricePath } from '../queries.js';

interface PriceForm {
  readonly model: string;
  readonly prompt: string;
  readonly completion: string;
  readonly image: string;
}

interface Rates {
  readonly prompt_per_million: number;
  readonly completion_per_million: number;
  readonly per_image: number;
}

interface NewPrice {
  readonly model: string;
  readonly rates: Rates;
}

/** Limits of the admin API: $10,000 per million tokens, $1,000 per image. */
const MAX_PER_MILLION = 10_000_000_000;
const MAX_PER_IMAGE = 1_000_000_000;

/** `price`: the current price; null for a model to be named. */
export function PriceDialog({ price, onClose }: { readonly price: AdminPrice | null; readonly onClose: () => void }) {
  const [newPrice, setNewPrice] = useState<NewPrice | null>(null);
  const { register, handleSubmit, formState } = useForm<PriceForm>({
    defaultValues: {
      model: price?.model ?? '',
      prompt: price === null ? '' : formatUsdInput(price.prompt_per_million),
      completion: price === null ? '' : formatUsdInput(price.completion_per_million),
      image: price === null ? '0' : formatUsdInput(price.per_image),
    },
  });
  if (newPrice !== null) return <ConfirmPrice newPrice={newPrice} current={price} onBack={() => setNewPrice(null)} onClose={onClose} />;
  const { errors } = formState;
  const amount = (max: number) => ({
    validate: (text: string) => {
      const typed = parseUsd(text, 6, { zero: true });
      if (typed.kind === 'refused') return typed.problem;
      return typed.microUsd <= max || `At most ${formatUsd(max)}.`;
    },
  });
  return (
    <Dialog
      open
      onOpenChange={(open) => (open ? undefined : onClose())}
      title={price === null ? 'Add price' : `Price of ${modelName(price.model)}`}
      description="In US dollars. Applies immediately to new requests."
    >
      <Form onSubmit={handleSubmit((form) => setNewPrice(toNewPrice(form)))}>
        {price === null ? (
          <Field
            label="Model"
            hint="The model ID that clients send, or * for every model without its own price."
            autoComplete="off"
            spellCheck={false}
            error={errors.model?.message}
            {...register('model', { validate: (model) => model.trim() !== '' || 'Enter a model ID or *.' })}
          />
        ) : null}
        <Field
          label="Input price per 1M tokens"
          inputMode="decimal"
          suffix="USD"
          autoComplete="off"
          error={errors.prompt?.message}
          {...register('prompt', amount(MAX_PER_MILLION))}
        />
        <Field
          label="Output price per 1M tokens"
          inputMode="decimal"
          suffix="USD"
          autoComplete="off"
          error={errors.completion?.message}
          {...register('completion', amount(MAX_PER_MILLION))}
        />
        <Field
          label="Image"
          hint="Per image of 1024×1024 pixels."
          inputMode="decimal"
          suffix="USD"
          autoComplete="off"
          error={errors.image?.message}
          {...register('image', amount(MAX_PER_IMAGE))}
        />
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary">
            Continue
          </Button>
        </DialogActions>
      </Form>
    </Dialog>
  );
}

function toNewPrice({ model, prompt, completion, image }: PriceForm): NewPrice {
  const micro = (text: string): number => {
    const typed = parseUsd(text, 6, { zero: true });
    return typed.kind === 'amount' ? typed.microUsd : 0;
  };
  const rates = { prompt_per_million: micro(prompt), completion_per_million: micro(completion), per_image: micro(image) };
  return { model: model.trim(), rates };
}

interface ConfirmPriceProps {
  readonly newPrice: NewPrice;
  readonly current: AdminPrice | null;
  readonly onBack: () => void;
  readonly onClose: () => void;
}

function ConfirmPrice({ newPrice: { model, rates }, current, onBack, onClose }: ConfirmPriceProps) {
  const toast = useToast();
  const queryClient = useQueryClient();
  const { mutate, isPending, error } = useMutation({
    mutationFn: async () => {
      await api.put(pricePath(model), rates);
      toast.success(`Price of ${modelName(model)} set`);
      await queryClient.invalidateQueries({ queryKey: ADMIN_KEY });
      onClose();
    },
  });
  return (
    <Dialog open onOpenChange={(open) => (open ? undefined : onClose())} title={`Set this price for ${modelName(model)}?`} persistent>
      <dl className="facts">
        <Change label="Input price per 1M tokens" before={current?.prompt_per_million} after={rates.prompt_per_million} />
        <Change label="Output price per 1M tokens" before={current?.completion_per_million} after={rates.completion_per_million} />
        <Change label="Image" before={current?.per_image} after={rates.per_image} />
      </dl>
      <ErrorNote error={error} title="The price was not set." />
      <DialogActions>
        <Button onClick={onBack}>Back</Button>
        <Button kind="danger" busy={isPending} onClick={() => mutate()}>
          Set price
        </Button>
      </DialogActions>
    </Dialog>
  );
}

function Change({ label, before, after }: { readonly label: string; readonly before: number | undefined; readonly after: number }) {
  return (
    <>
      <dt>{label}</dt>
      <dd>{before === undefined || before === after ? formatUsd(after) : `${formatUsd(before)} → ${formatUsd(after)}`}</dd>
    </>
  );
}

/** Wildcard for every model without its own price. */
const ANY_MODEL = '*';

export function modelName(model: string): string {
  return model === ANY_MODEL ? 'All other models' : model;
}
