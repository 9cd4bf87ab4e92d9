/** Images of the playground: asked for, shown, and checked byte by byte. */
import { useId, useState } from 'react';
import { imageModels, type ModelEntry, modelName } from '../../../features/account/models.js';
import { EmptyState } from '../../../ui/feedback/empty-state.js';
import { Progress } from '../../../ui/feedback/progress.js';
import { Field } from '../../../ui/forms/field.js';
import { Select } from '../../../ui/forms/select.js';
import { AnswerFooter } from '../answer-footer.js';
import { whole } from '../chat/parameters.js';
import { Composer } from '../composer.js';
import { ProblemNote } from '../problem-note.js';
import { type Drawing, useImages } from './use-images.js';

export function ImagesView({ models }: { readonly models: readonly ModelEntry[] }) {
  const drawings = useImages();
  const heading = useId();
  const made = imageModels(models);
  const [wanted, setWanted] = useState<string | null>(null);
  const [size, setSize] = useState<string | null>(null);
  const [count, setCount] = useState('1');
  const [seed, setSeed] = useState('');
  const model = made.find(({ id }) => id === wanted) ?? made[0];
  const sizes = model?.metadata.sizes ?? [];
  const chosen = size !== null && sizes.includes(size) ? size : (sizes[0] ?? 'auto');
  const max = Math.max(1, model?.metadata.max_images ?? 1);
  const seedNumber = whole(seed, 0, Number.MAX_SAFE_INTEGER);
  const busy = drawings.list.some(({ state }) => state === 'waiting');
  if (model === undefined && drawings.list.length === 0) {
    return (
      <EmptyState title="No image model is available">Models come and go with the machines. This page refreshes automatically.</EmptyState>
    );
  }
  return (
    <div className="playground">
      <section className="conversation" aria-labelledby={heading}>
        <h2 id={heading} className="visually-hidden">
          Images
        </h2>
        <Composer
          label="Image description"
          placeholder="Describe the image, such as: a red square on blue ground"
          send="Draw"
          busy={busy}
          disabled={model === undefined || seedNumber === null}
          onSend={(prompt) => {
            if (model !== undefined && seedNumber !== null) {
              drawings.draw({ model: model.id, prompt, n: Math.min(Number(count), max), size: chosen, seed: seedNumber ?? null });
            }
          }}
          onStop={drawings.stop}
        />
        {drawings.list.length === 0 ? (
          <EmptyState title="Ask for an image">
            The machine signs the hash of each image. This browser compares it with the bytes that came.
          </EmptyState>
        ) : (
          <ol className="drawings" aria-label="List of images">
            {drawings.list.map((drawing) => (
              <DrawingView key={drawing.id} drawing={drawing} onRetry={busy ? null : () => drawings.again(drawing)} />
            ))}
          </ol>
        )}
      </section>
      <div className="playground-side">
        <section className="settings" aria-label="Settings">
          <Select
            label="Model"
            value={model?.id ?? ''}
            options={made.map((one) => ({ value: one.id, label: modelName(one) }))}
            onValue={setWanted}
          />
          <div className="settings-grid">
            <Select label="Size" value={chosen} options={(sizes.length === 0 ? ['auto'] : sizes).map(option)} onValue={setSize} />
            <Select
              label="Number"
              value={count}
              options={Array.from({ length: max }, (_, index) => option(String(index + 1)))}
              onValue={setCount}
            />
          </div>
          <Field
            label="Seed"
            inputMode="numeric"
            autoComplete="off"
            hint="The same seed makes the same image. Empty: by chance."
            value={seed}
            error={seedNumber === null ? 'A seed is a whole number.' : undefined}
            onChange={(event) => setSeed(event.target.value)}
          />
        </section>
      </div>
    </div>
  );
}

function option(value: string) {
  return { value, label: value };
}

function DrawingView({ drawing, onRetry }: { readonly drawing: Drawing; readonly onRetry: (() => void) | null }) {
  const { order, state, images, problem } = drawing;
  return (
    <li className="drawing" aria-busy={state === 'waiting'}>
      <p className="drawing-prompt">{order.prompt}</p>
      {state === 'waiting' ? <Progress label="The machine draws. This can take a minute." /> : null}
      {state === 'stopped' ? <p className="turn-aside">Stopped.</p> : null}
      {problem === null ? null : <ProblemNote problem={problem} onRetry={onRetry} />}
      {images.length === 0 ? null : (
        <div className="drawing-images">
          {images.map((address, index) => (
            <a key={address} href={address} download={`image-${index + 1}`} title="Save the image">
              <img src={address} alt={images.length === 1 ? order.prompt : `${order.prompt} (${index + 1} of ${images.length})`} />
            </a>
          ))}
        </div>
      )}
      <AnswerFooter
        provider={drawing.provider}
        usage={null}
        finishReason={null}
        costMicroUsd={drawing.costMicroUsd}
        check={drawing.check}
      />
    </li>
  );
}
