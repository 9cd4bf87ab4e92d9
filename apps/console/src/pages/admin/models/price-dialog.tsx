/** `PriceDialog`: sets the price of a model. Asks for the rates, then for confirmation. */
import type { AdminPrice } from '@inference/formats';
import { useState } from 'react';
import { api } from '../../../api/api-client.js';
import { checkUsd, formatUsdInput, microUsdOf } from '../../../features/account/usd-amount.js';
import { UsdField } from '../../../features/account/usd-field.js';
import { ConfirmDialog, FormDialog } from '../../../ui/dialogs/dialog.js';
import { formatUsd } from '../../../ui/display/figures.js';
import { Fact, Facts } from '../../../ui/display/page.js';
import { Field } from '../../../ui/forms/field.js';
import { useFormMutation } from '../../../ui/forms/form.js';
import { pricePath, useToastAndRefetch } from '../queries.js';

interface Rates {
  readonly prompt_per_million: number;
  /** Absent: same as `prompt_per_million`. */
  readonly cached_per_million?: number;
  readonly completion_per_million: number;
  readonly per_image: number;
}

interface NewPrice {
  readonly model: string;
  readonly rates: Rates;
}

/** Limits of the admin API in micro-USD: $10,000 per million tokens, $1,000 per image. */
const MAX_PER_MILLION = 10_000_000_000;
const MAX_PER_IMAGE = 1_000_000_000;

/** `price`: current price of the model; null: the user enters the model. */
export function PriceDialog({ price, onClose }: { readonly price: AdminPrice | null; readonly onClose: () => void }) {
  const [newPrice, setNewPrice] = useState<NewPrice | null>(null);
  const form = useFormMutation(
    {
      model: price?.model ?? '',
      prompt: price === null ? '' : formatUsdInput(price.prompt_per_million),
      cached: price === null || price.cached_per_million === price.prompt_per_million ? '' : formatUsdInput(price.cached_per_million),
      completion: price === null ? '' : formatUsdInput(price.completion_per_million),
      image: price === null ? '0' : formatUsdInput(price.per_image),
    },
    async ({ model, prompt, cached, completion, image }) => {
      const rates = {
        prompt_per_million: microUsdOf(prompt),
        ...(cached.trim() === '' ? {} : { cached_per_million: microUsdOf(cached) }),
        completion_per_million: microUsdOf(completion),
        per_image: microUsdOf(image),
      };
      setNewPrice({ model: model.trim(), rates });
    },
  );
  if (newPrice !== null) return <ConfirmPrice newPrice={newPrice} current={price} onBack={() => setNewPrice(null)} onClose={onClose} />;
  const amount = (max: number) => ({ validate: (text: string) => checkUsd(text, { places: 6, min: 0, max }) });
  const cachedAmount = { validate: (text: string) => text.trim() === '' || amount(MAX_PER_MILLION).validate(text) };
  return (
    <FormDialog
      onClose={onClose}
      title={price === null ? 'Add price' : `Price of ${modelName(price.model)}`}
      description="In US dollars. Applies immediately to new requests."
      form={form}
      submit="Continue"
    >
      {price === null ? (
        <Field
          label="Model"
          hint="The model ID that clients send, or * for every model without its own price."
          autoComplete="off"
          spellCheck={false}
          {...form.field('model', { validate: (model) => model.trim() !== '' || 'Enter a model ID or *.' })}
        />
      ) : null}
      <UsdField label="Input price per 1M tokens" {...form.field('prompt', amount(MAX_PER_MILLION))} />
      <UsdField
        label="Cached input per 1M tokens"
        hint="For input tokens from the prefix cache. At most the input price. Empty: the same as the input price."
        {...form.field('cached', cachedAmount)}
      />
      <UsdField label="Output price per 1M tokens" {...form.field('completion', amount(MAX_PER_MILLION))} />
      <UsdField label="Image" hint="Per image of 1024×1024 pixels." {...form.field('image', amount(MAX_PER_IMAGE))} />
    </FormDialog>
  );
}

interface ConfirmPriceProps {
  readonly newPrice: NewPrice;
  readonly current: AdminPrice | null;
  readonly onBack: () => void;
  readonly onClose: () => void;
}

function ConfirmPrice({ newPrice: { model, rates }, current, onBack, onClose }: ConfirmPriceProps) {
  const toastAndRefetch = useToastAndRefetch();
  const setPrice = async (): Promise<void> => {
    await api.put(pricePath(model), rates);
    await toastAndRefetch(`Price of ${modelName(model)} set`);
  };
  return (
    <ConfirmDialog
      onClose={onClose}
      title={`Set this price for ${modelName(model)}?`}
      persistent
      errorTitle="The price was not set."
      confirm="Set price"
      onBack={onBack}
      onConfirm={setPrice}
    >
      <Facts>
        <Change label="Input price per 1M tokens" before={current?.prompt_per_million} after={rates.prompt_per_million} />
        <Change
          label="Cached input per 1M tokens"
          before={current?.cached_per_million}
          after={rates.cached_per_million ?? rates.prompt_per_million}
        />
        <Change label="Output price per 1M tokens" before={current?.completion_per_million} after={rates.completion_per_million} />
        <Change label="Image" before={current?.per_image} after={rates.per_image} />
      </Facts>
    </ConfirmDialog>
  );
}

function Change({ label, before, after }: { readonly label: string; readonly before: number | undefined; readonly after: number }) {
  return (
    <Fact label={label}>{before === undefined || before === after ? formatUsd(after) : `${formatUsd(before)} → ${formatUsd(after)}`}</Fact>
  );
}

/** Wildcard for all models without their own price. */
const ANY_MODEL = '*';

export function modelName(model: string): string {
  return model === ANY_MODEL ? 'All other models' : model;
}
