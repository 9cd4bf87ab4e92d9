/** Chat mode of the playground. */
import { useEffect, useId, useRef, useState } from 'react';
import { type ModelEntry, modelName, textModels } from '../../../features/account/models.js';
import { VERDICT_OF_EVIDENCE, VERDICTS } from '../../../features/trust/verdicts.js';
import { EmptyState } from '../../../ui/feedback/placeholders.js';
import { Button } from '../../../ui/forms/button.js';
import { Field, Select, TextAreaField } from '../../../ui/forms/field.js';
import { AnswerFooter } from '../answer-footer.js';
import { Composer } from '../composer.js';
import { ProblemNote } from '../problem-note.js';
import { type Answer, isBusy, type Turn } from './conversation.js';
import { EMPTY_PARAMETERS, type ParameterForm, parseParameters } from './parameters.js';
import { type ChatSettings, useChat } from './use-chat.js';

const SUGGESTIONS = ['What is the capital of France?', 'Explain digital signatures to a child.', 'Write a haiku about apples.'];

export function ChatView({ models }: { readonly models: readonly ModelEntry[] }) {
  const chat = useChat();
  const heading = useId();
  const [selected, setSelected] = useState<string | null>(null);
  const [form, setForm] = useState<ParameterForm>(EMPTY_PARAMETERS);
  const texts = textModels(models);
  const model = texts.find(({ id }) => id === selected) ?? texts[0];
  const read = parseParameters(form);
  const refused = read.kind === 'refused' ? read : null;
  const busy = isBusy(chat.turns);
  const settings: ChatSettings | null =
    model === undefined || read.kind === 'refused' ? null : { model: model.id, system: form.system, parameters: read.parameters };
  if (model === undefined && chat.turns.length === 0) {
    return (
      <EmptyState title="No text model is available">Models come and go with the machines. This page refreshes automatically.</EmptyState>
    );
  }
  const ask = (text: string): void => {
    if (settings !== null) chat.ask(text, settings);
  };
  return (
    <div className="playground">
      <section className="conversation" aria-labelledby={heading}>
        <h2 id={heading} className="visually-hidden">
          Conversation
        </h2>
        {chat.turns.length === 0 ? (
          <EmptyState title="Start a conversation">
            <p>The machine signs every response. Your browser verifies the signature.</p>
            <div className="suggestions">
              {SUGGESTIONS.map((text) => (
                <Button key={text} size="small" disabled={settings === null} onClick={() => ask(text)}>
                  {text}
                </Button>
              ))}
            </div>
          </EmptyState>
        ) : (
          <Turns turns={chat.turns} onRetry={settings === null || busy ? null : (answer) => chat.retry(answer, settings)} />
        )}
        <Composer
          label="Your message"
          placeholder="Type a message. Enter sends, Shift+Enter adds a line."
          send="Send"
          busy={busy}
          disabled={settings === null}
          onSend={ask}
          onStop={chat.stop}
        />
        <p role="status" className="visually-hidden">
          {statusOf(chat.turns)}
        </p>
      </section>
      <div className="playground-side">
        <ChatSettingsPanel models={texts} model={model?.id ?? ''} onModel={setSelected} form={form} onForm={setForm} refused={refused} />
        <Button disabled={chat.turns.length === 0} onClick={chat.clear}>
          New conversation
        </Button>
        <p className="field-hint">
          The conversation exists only on this page and is not stored. Requests cost the same as through the API.
        </p>
      </div>
    </div>
  );
}

function Turns({ turns, onRetry }: { readonly turns: readonly Turn[]; readonly onRetry: Parameters<typeof TurnView>[0]['onRetry'] }) {
  const end = useRef<HTMLDivElement>(null);
  const last = turns.at(-1);
  // Scrolls with the response unless the user has scrolled up.
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs after every change of the conversation
  useEffect(() => {
    const { scrollHeight, scrollTop, clientHeight } = document.documentElement;
    if (last?.role === 'user' || scrollHeight - scrollTop - clientHeight < 240) end.current?.scrollIntoView({ block: 'nearest' });
  }, [turns]);
  return (
    <>
      <ol className="turns" aria-label="Messages">
        {turns.map((turn) => (
          <TurnView key={turn.id} turn={turn} onRetry={turn === last ? onRetry : null} />
        ))}
      </ol>
      <div ref={end} className="turns-end" />
    </>
  );
}

/** Status for screen readers: completion and verification, not each word. */
function statusOf(turns: readonly Turn[]): string {
  const last = turns.at(-1);
  if (last === undefined || last.role === 'user') return '';
  switch (last.state) {
    case 'waiting':
    case 'streaming':
      return 'The response is arriving.';
    case 'stopped':
      return 'The response was stopped.';
    case 'failed':
      return '';
    case 'complete':
      if (last.check.state === 'verified') return `The response is complete. ${VERDICTS[VERDICT_OF_EVIDENCE[last.check.enclave]].label}.`;
      if (last.check.state === 'failed') return 'The response is complete, but verification failed.';
      return 'The response is complete.';
  }
}

interface ChatSettingsPanelProps {
  readonly models: readonly ModelEntry[];
  readonly model: string;
  readonly onModel: (model: string) => void;
  readonly form: ParameterForm;
  readonly onForm: (form: ParameterForm) => void;
  readonly refused: { readonly field: keyof ParameterForm; readonly problem: string } | null;
}

/** Model, system prompt and parameters of the conversation. */
function ChatSettingsPanel({ models, model, onModel, form, onForm, refused }: ChatSettingsPanelProps) {
  const heading = useId();
  const [open, setOpen] = useState(false);
  const bind = (field: keyof ParameterForm) => ({
    value: form[field],
    error: refused?.field === field ? refused.problem : undefined,
    autoComplete: 'off',
    onChange: (event: { target: { value: string } }) => onForm({ ...form, [field]: event.target.value }),
  });
  return (
    <section className="settings" aria-labelledby={heading}>
      <h2 id={heading} className="visually-hidden">
        Settings
      </h2>
      <Select label="Model" value={model} options={models.map((one) => ({ value: one.id, label: modelName(one) }))} onValue={onModel} />
      <TextAreaField label="System prompt" rows={3} {...bind('system')} />
      <details open={open || refused !== null} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>Parameters</summary>
        <div className="settings-grid">
          <Field label="Temperature" inputMode="decimal" placeholder="1" {...bind('temperature')} />
          <Field label="Top P" inputMode="decimal" placeholder="1" {...bind('topP')} />
          <Field label="Max tokens" inputMode="numeric" {...bind('maxTokens')} />
          <Field label="Seed" inputMode="numeric" {...bind('seed')} />
        </div>
        <TextAreaField label="Stop sequences" hint="One per line, up to four." rows={2} {...bind('stop')} />
      </details>
    </section>
  );
}

interface TurnViewProps {
  readonly turn: Turn;
  /** Null if a retry is not possible. */
  readonly onRetry: ((answer: Answer) => void) | null;
}

/** One message of the conversation. Model output is rendered as plain text; markup has no effect. */
function TurnView({ turn, onRetry }: TurnViewProps) {
  if (turn.role === 'user') {
    return (
      <li className="turn" data-role="user">
        <span className="visually-hidden">You: </span>
        <div className="turn-text">{turn.text}</div>
      </li>
    );
  }
  const busy = turn.state === 'waiting' || turn.state === 'streaming';
  return (
    <li className="turn" data-role="assistant" data-state={turn.state} aria-busy={busy}>
      <span className="visually-hidden">{`${turn.model}: `}</span>
      {turn.text === '' ? null : <div className="turn-text">{turn.text}</div>}
      {turn.state === 'waiting' ? <p className="turn-waiting">{waitingText(turn.provider !== null)}</p> : null}
      {turn.state === 'stopped' ? <p className="turn-note">Stopped. The response is incomplete and cannot be verified.</p> : null}
      {turn.state === 'complete' && turn.text === '' ? <p className="turn-note">The model returned no output.</p> : null}
      {turn.problem === null ? null : <ProblemNote problem={turn.problem} onRetry={onRetry === null ? null : () => onRetry(turn)} />}
      <AnswerFooter
        provider={turn.provider}
        usage={turn.usage}
        finishReason={turn.finishReason}
        costMicroUsd={turn.costMicroUsd}
        check={turn.check}
      />
    </li>
  );
}

/** `placed`: a machine has accepted the request. */
function waitingText(placed: boolean): string {
  return placed ? 'Processing the prompt…' : 'Waiting for a machine…';
}
