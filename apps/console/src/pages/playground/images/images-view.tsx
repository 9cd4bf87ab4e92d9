/** `ImagesView`: image mode of the playground. Form for prompt and settings, and the generated images. */
import { Download } from 'lucide-react';
import { useId, useRef, useState } from 'react';
import { imageModels, type ModelEntry, modelName } from '../../../features/account/models.js';
import { Progress } from '../../../ui/feedback/note.js';
import { EmptyState } from '../../../ui/feedback/placeholders.js';
import { Field, Select } from '../../../ui/forms/field.js';
import { AnswerFooter } from '../answer-footer.js';
import { parseInteger } from '../chat/parameters.js';
import { ViewCode } from '../code/view-code.js';
import { Composer } from '../composer.js';
import { ProblemNote } from '../problem-note.js';
import { type ImageRequest, imageBody } from '../requests/image-request.js';
import { imageFileName } from './image-file-name.js';
import { type ImageJob, useImages } from './use-images.js';

const EXAMPLE = 'a red square on a blue background';

export function ImagesView({ models }: { readonly models: readonly ModelEntry[] }) {
  const imageJobs = useImages();
  const heading = useId();
  const available = imageModels(models);
  const [selected, setSelected] = useState<string | null>(null);
  const [size, setSize] = useState<string | null>(null);
  const [count, setCount] = useState('1');
  const [seed, setSeed] = useState('');
  const [draft, setDraft] = useState('');
  const input = useRef<HTMLTextAreaElement>(null);
  const model = available.find(({ id }) => id === selected) ?? available[0];
  const sizes = model?.metadata.sizes ?? [];
  const chosen = size !== null && sizes.includes(size) ? size : (sizes[0] ?? 'auto');
  const max = Math.max(1, model?.metadata.max_images ?? 1);
  const seedNumber = parseInteger(seed, 0, Number.MAX_SAFE_INTEGER);
  const busy = imageJobs.list.some(({ state }) => state === 'waiting');
  if (model === undefined && imageJobs.list.length === 0) {
    return (
      <EmptyState title="No image model is available">Models come and go with the machines. This page refreshes automatically.</EmptyState>
    );
  }
  const requestFor = (prompt: string): ImageRequest | null =>
    model === undefined || seedNumber === null
      ? null
      : { model: model.id, prompt, n: Math.min(Number(count), max), size: chosen, seed: seedNumber ?? null };
  const typed = draft.trim();
  const shown = requestFor(typed === '' ? (imageJobs.list[0]?.input.prompt ?? EXAMPLE) : typed);
  return (
    <div className="playground">
      <section className="conversation" aria-labelledby={heading}>
        <h2 id={heading} className="visually-hidden">
          Images
        </h2>
        <Composer
          label="Image description"
          placeholder={`For example: ${EXAMPLE}`}
          sendLabel="Generate"
          text={draft}
          onText={setDraft}
          input={input}
          busy={busy}
          disabled={model === undefined || seedNumber === null}
          onSend={(prompt) => {
            const request = requestFor(prompt);
            if (request !== null) imageJobs.generate(request);
          }}
          onStop={imageJobs.stop}
        />
        {imageJobs.list.length === 0 ? (
          <EmptyState title="Generate an image">The machine signs the hash of each image. Your browser verifies it.</EmptyState>
        ) : (
          <ol className="image-jobs" aria-label="List of images">
            {imageJobs.list.map((job) => (
              <ImageJobView key={job.id} job={job} onRetry={busy ? null : () => imageJobs.retry(job)} />
            ))}
          </ol>
        )}
      </section>
      <div className="playground-side">
        <section className="settings" aria-label="Settings">
          <Select
            label="Model"
            value={model?.id ?? ''}
            options={available.map((entry) => ({ value: entry.id, label: modelName(entry) }))}
            onValue={setSelected}
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
            hint="The same seed gives the same image. Empty: random."
            value={seed}
            error={seedNumber === null ? 'A seed is a whole number.' : undefined}
            onChange={(event) => setSeed(event.target.value)}
          />
        </section>
        <div>
          <ViewCode
            endpoint="images"
            requests={shown === null ? [] : [{ model: shown.model, body: () => imageBody(shown) }]}
            isExample={typed === '' && imageJobs.list.length === 0}
          />
        </div>
      </div>
    </div>
  );
}

function option(value: string) {
  return { value, label: value };
}

function ImageJobView({ job, onRetry }: { readonly job: ImageJob; readonly onRetry: (() => void) | null }) {
  const { input, state, images, problem } = job;
  return (
    <li className="image-job" aria-busy={state === 'waiting'}>
      <p className="image-job-prompt">{input.prompt}</p>
      {state === 'waiting' ? <Progress label="Generating. This can take a minute." /> : null}
      {state === 'stopped' ? <p className="turn-note">Stopped.</p> : null}
      {problem === null ? null : <ProblemNote problem={problem} onRetry={onRetry} />}
      {images.length === 0 ? null : (
        <div className="image-job-images">
          {images.map(({ objectUrl, type }, index) => {
            const number = images.length === 1 ? null : index + 1;
            return (
              <figure key={objectUrl} className="image-file">
                <img src={objectUrl} alt={number === null ? input.prompt : `${input.prompt} (${number} of ${images.length})`} />
                <a className="button" data-kind="quiet" data-size="small" href={objectUrl} download={imageFileName(input, type, number)}>
                  <Download size={16} aria-hidden="true" />
                  <span className="button-text">{number === null ? 'Download' : `Download image ${number}`}</span>
                </a>
              </figure>
            );
          })}
        </div>
      )}
      <AnswerFooter provider={job.provider} usage={null} finishReason={null} costMicroUsd={job.costMicroUsd} check={job.check} />
    </li>
  );
}
