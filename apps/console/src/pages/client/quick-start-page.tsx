/** `/quick-start`: base URL, API key, and example requests in several languages to copy. */
import './client.css';
import type { ConsoleNewKey } from '@inference/formats';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../../api/api-client.js';
import { useInvalidateBilling } from '../../features/account/balance.js';
import { type KeyAction, WithFirstSteps } from '../../features/account/first-steps-panel.js';
import { imageModels, type ModelEntry, modelName, readsImages, textModels, useModels } from '../../features/account/models.js';
import { Card, PageHeader } from '../../ui/display/page.js';
import { ErrorNote, Loaded } from '../../ui/feedback/error-state.js';
import { EmptyState, Skeleton } from '../../ui/feedback/placeholders.js';
import { Button } from '../../ui/forms/button.js';
import { CopyField } from '../../ui/forms/copy-field.js';
import { Select } from '../../ui/forms/field.js';
import { Tabs } from '../../ui/navigation/tabs.js';
import { useUrlChoice } from '../../ui/navigation/url-state.js';
import { EndToEndRequest } from './end-to-end-request.js';
import { featureSnippets, programSnippets } from './feature-snippets.js';
import { imageSnippet, KEY_PLACEHOLDER, type Snippet, type SnippetFacts, textSnippets, visionSnippet } from './snippets.js';

export function Page() {
  const models = useModels();
  const [secret, setSecret] = useState<string | null>(null);
  const invalidateBilling = useInvalidateBilling();
  const { mutate, isPending, error } = useMutation({
    mutationFn: async () => {
      setSecret((await api.post<ConsoleNewKey>('/console/v1/keys', { name: 'Quick start' })).secret);
      await invalidateBilling();
    },
  });
  const keyAction: KeyAction = { busy: isPending, create: () => mutate() };
  return (
    <>
      <PageHeader title="Quick start" about="Any OpenAI or Anthropic client works: change its base URL and API key." />
      <div className="stack">
        <WithFirstSteps keyAction={keyAction}>
          <Card title="Base URL and key">
            <div className="stack-small">
              <CopyField label="Base URL, OpenAI format" value={`${window.location.origin}/v1`} />
              <CopyField label="Base URL, Anthropic format" value={window.location.origin} />
              <QuickKey secret={secret} action={keyAction} error={error} />
            </div>
          </Card>
          <Loaded query={models} subject="The models">
            <FirstRequest models={models.data} secret={secret} />
          </Loaded>
        </WithFirstSteps>
      </div>
    </>
  );
}

interface QuickKeyProps {
  readonly secret: string | null;
  readonly action: KeyAction;
  readonly error: Error | null;
}

function QuickKey({ secret, action, error }: QuickKeyProps) {
  if (secret !== null) {
    return (
      <>
        <CopyField label="API key" value={secret} />
        <p className="field-hint">Copy the key now: it is shown only on this page. The requests below contain it.</p>
      </>
    );
  }
  return (
    <div className="stack-small">
      <ErrorNote error={error} />
      <div>
        <Button busy={action.busy} onClick={action.create}>
          Create a key and insert it
        </Button>
      </div>
    </div>
  );
}

interface FirstRequestProps {
  /** Undefined while loading. */
  readonly models: readonly ModelEntry[] | undefined;
  readonly secret: string | null;
}

function FirstRequest({ models, secret }: FirstRequestProps) {
  const texts = textModels(models ?? []);
  const [selected, setSelected] = useState<string | null>(null);
  const model = texts.find(({ id }) => id === selected) ?? texts[0];
  const [image] = imageModels(models ?? []);
  const visionModel = model !== undefined && readsImages(model) ? model : texts.find(readsImages);
  if (model === undefined) {
    return (
      <Card title="First request">
        {models === undefined ? (
          <Skeleton height="16rem" />
        ) : (
          <EmptyState title="No text model is available">
            Models come and go with the machines of the network. This page refreshes automatically.
          </EmptyState>
        )}
      </Card>
    );
  }
  const facts = { base: window.location.origin, key: secret ?? KEY_PLACEHOLDER, model: model.id };
  return (
    <>
      <Card
        title="First request"
        actions={
          texts.length < 2 ? undefined : (
            <Select
              label="Model"
              hideLabel
              value={model.id}
              options={texts.map((text) => ({ value: text.id, label: modelName(text) }))}
              onValue={setSelected}
            />
          )
        }
      >
        <Requests facts={facts} imageModel={image?.id ?? null} visionModel={visionModel?.id ?? null} />
      </Card>
      <Card title="Next steps">
        <SnippetTabs label="Features" parameter="feature" snippets={featureSnippets(facts)} />
      </Card>
      <Card
        title="Coding agents and frameworks"
        about="Coding agents need a model with a large context: their prompts have 10,000 to 40,000 tokens."
      >
        <SnippetTabs label="Programs" parameter="program" snippets={programSnippets(facts)} />
      </Card>
    </>
  );
}

interface SnippetTabsProps {
  readonly label: string;
  /** Search parameter of the selected tab. */
  readonly parameter: string;
  readonly snippets: readonly [Snippet, ...Snippet[]];
}

function SnippetTabs({ label, parameter, snippets }: SnippetTabsProps) {
  const [first, ...others] = snippets;
  const [tab, setTab] = useUrlChoice(parameter, [first.id, ...others.map(({ id }) => id)]);
  const tabs = snippets.map((snippet) => ({ value: snippet.id, label: snippet.title, content: <PlainRequest snippet={snippet} /> }));
  return <Tabs label={label} value={tab} onValue={setTab} tabs={tabs} />;
}

const END_TO_END = 'end-to-end';

interface RequestsProps {
  readonly facts: SnippetFacts;
  /** Null: no model generates images. */
  readonly imageModel: string | null;
  /** Null: no model reads images. */
  readonly visionModel: string | null;
}

/** Tabs with example requests: per language, with images, and in end-to-end mode. The URL contains the selected tab. */
function Requests({ facts, imageModel, visionModel }: RequestsProps) {
  const [first, ...others] = textSnippets(facts);
  const snippets = [
    first,
    ...others,
    ...(imageModel === null ? [] : [imageSnippet({ ...facts, model: imageModel })]),
    ...(visionModel === null ? [] : [visionSnippet({ ...facts, model: visionModel }, imageModel)]),
  ];
  const [tab, setTab] = useUrlChoice('request', [first.id, ...snippets.slice(1).map(({ id }) => id), END_TO_END]);
  return (
    <Tabs
      label="Languages"
      value={tab}
      onValue={setTab}
      tabs={[
        ...snippets.map((snippet) => ({ value: snippet.id, label: snippet.title, content: <PlainRequest snippet={snippet} /> })),
        { value: END_TO_END, label: 'End-to-end', content: <EndToEndRequest facts={facts} /> },
      ]}
    />
  );
}

function PlainRequest({ snippet: { title, before, code, run } }: { readonly snippet: Snippet }) {
  return (
    <div className="stack-small">
      {before === null ? null : /^(?:npm|pip) /.test(before) ? <CopyField label="Install" value={before} /> : <p>{before}</p>}
      <CopyField label={title} hideLabel value={code} multiline />
      {run === undefined ? null : <CopyField label="Run" value={run} />}
    </div>
  );
}
