/** `ChatView`: chat mode of the playground. Conversation and composer on the left, settings on the right. */
import { type ReactNode, useEffect, useId, useMemo, useRef, useState } from 'react';
import { useMe } from '../../../api/session.js';
import { type ModelEntry, textModels } from '../../../features/account/models.js';
import { VERDICT_OF_EVIDENCE, VERDICTS } from '../../../features/trust/verdicts.js';
import { EmptyState } from '../../../ui/feedback/placeholders.js';
import { Button } from '../../../ui/forms/button.js';
import { CheckField } from '../../../ui/forms/field.js';
import { textOnlyReason } from '../attachments/question-image.js';
import { useAttachments } from '../attachments/use-attachments.js';
import { ViewCode } from '../code/view-code.js';
import { Composer } from '../composer.js';
import { preloadMarkdown } from '../markdown/response-text.js';
import { chatBody, imagesOf, isBusy, type QuestionContent, shownAnswer, type Turn } from './conversation.js';
import { EMPTY_PARAMETERS, type ParameterForm, parseParameters } from './parameters.js';
import { SettingsPanel } from './settings-panel.js';
import { forgetConversation, loadConversation, type StoredConversation, storeConversation } from './stored-conversation.js';
import { TurnList } from './turn-list.js';
import { type ChatSettings, useChat } from './use-chat.js';

const SUGGESTIONS = ['What is the capital of France?', 'Explain digital signatures to a child.', 'Write a haiku about apples.'] as const;

export function ChatView({ models }: { readonly models: readonly ModelEntry[] }) {
  const { id: accountId } = useMe();
  const [stored] = useState(() => loadConversation(window.sessionStorage, accountId));
  const chat = useChat(stored?.turns ?? []);
  const input = useRef<HTMLTextAreaElement>(null);
  const [draft, setDraft] = useState('');
  const [chosen, setChosen] = useState<readonly string[]>(stored?.models ?? []);
  const [form, setForm] = useState<ParameterForm>(stored?.form ?? EMPTY_PARAMETERS);
  const storage = useStoredConversation(accountId, { turns: chat.turns, models: chosen, form }, stored !== null);
  useEffect(preloadMarkdown, []);
  const texts = textModels(models);
  const selected = useMemo(() => availableModels(chosen, models), [chosen, models]);
  const sent = imagesOf(chat.turns);
  const imageRefusal = textOnlyReason(texts, selected);
  const attachments = useAttachments({ sent, refusal: imageRefusal });
  const read = parseParameters(form);
  const hasUnreadableImages = imageRefusal !== null && sent.length + attachments.images.length > 0;
  const settings = settingsOf(selected, form, read, hasUnreadableImages);
  if (texts.length === 0 && chat.turns.length === 0) {
    return (
      <EmptyState title="No text model is available">Models come and go with the machines. This page refreshes automatically.</EmptyState>
    );
  }
  const focusInput = (): void => input.current?.focus();
  const ask = (content: QuestionContent): void => {
    if (settings !== null) chat.ask(content, settings);
  };
  return (
    <div className="playground">
      <Conversation chat={chat} settings={settings} onSuggestion={(text) => ask({ text, images: [] })} focusInput={focusInput}>
        <Composer
          label="Your message"
          placeholder="Type a message. Enter sends, Shift+Enter adds a line."
          sendLabel="Send"
          text={draft}
          onText={setDraft}
          input={input}
          busy={isBusy(chat.turns)}
          attachments={attachments}
          imageRefusal={imageRefusal}
          disabled={settings === null}
          onSend={(text) => {
            ask({ text, images: attachments.images });
            attachments.clear();
          }}
          onStop={chat.stop}
        />
      </Conversation>
      <div className="playground-side">
        <SettingsPanel
          models={texts}
          selected={selected}
          onSelect={setChosen}
          form={form}
          onForm={setForm}
          refused={read.kind === 'refused' ? read : null}
        />
        <div className="row">
          <ViewCode endpoint="chat" {...requestsOf(chat.turns, { text: draft.trim(), images: attachments.images }, settings)} />
          <Button
            disabled={chat.turns.length === 0}
            onClick={() => {
              chat.clear();
              focusInput();
            }}
          >
            Clear conversation
          </Button>
        </div>
        <StoreConversation storage={storage} />
      </div>
    </div>
  );
}

interface ConversationProps {
  readonly chat: ReturnType<typeof useChat>;
  /** Null: no request can be sent now. */
  readonly settings: ChatSettings | null;
  readonly onSuggestion: (text: string) => void;
  readonly focusInput: () => void;
  /** The composer. */
  readonly children: ReactNode;
}

/** Turns of the conversation above the composer. An empty conversation shows suggestions for the first question. */
function Conversation({ chat, settings, onSuggestion, focusInput, children }: ConversationProps) {
  const heading = useId();
  return (
    <section className="conversation" aria-labelledby={heading}>
      <h2 id={heading} className="visually-hidden">
        Conversation
      </h2>
      {chat.turns.length === 0 ? (
        <EmptyState title="Start a conversation">
          <p>The machine signs every response. Your browser verifies the signature.</p>
          <div className="suggestions">
            {SUGGESTIONS.map((text) => (
              <Button
                key={text}
                size="small"
                disabled={settings === null}
                onClick={() => {
                  onSuggestion(text);
                  focusInput();
                }}
              >
                {text}
              </Button>
            ))}
          </div>
        </EmptyState>
      ) : (
        <TurnList chat={chat} busy={isBusy(chat.turns)} settings={settings} onDone={focusInput} />
      )}
      {children}
      <p role="status" className="visually-hidden">
        {statusOf(chat.turns)}
      </p>
    </section>
  );
}

/** Check box that turns storing in this tab on and off. */
function StoreConversation({ storage }: { readonly storage: ReturnType<typeof useStoredConversation> }) {
  return (
    <>
      <CheckField
        label="Keep this conversation in this tab"
        hint="Stored in the session storage of this tab until you close it, clear the conversation or turn this off. The coordinator stores no messages."
        error={storage.failed ? 'Not stored: the conversation is too large, or the browser allows no storage.' : undefined}
        checked={storage.isOn}
        onChange={(event) => storage.set(event.target.checked)}
      />
      <p className="field-hint">
        {storage.isOn ? '' : 'The conversation exists only on this page and is not stored. '}
        Requests cost the same as through the API.
      </p>
    </>
  );
}

/** Settings of the next request. Null: no model is selected, parameters are invalid, or a model cannot read the images. */
function settingsOf(
  models: readonly string[],
  form: ParameterForm,
  read: ReturnType<typeof parseParameters>,
  hasUnreadableImages: boolean,
): ChatSettings | null {
  if (models.length === 0 || read.kind === 'refused' || hasUnreadableImages) return null;
  return { models, system: form.system, parameters: read.parameters };
}

/** At most two selected models. The first served model replaces a missing selection and models that are no longer served. */
function availableModels(chosen: readonly string[], models: readonly ModelEntry[]): readonly string[] {
  const [first] = textModels(models);
  if (first === undefined) return [];
  const [one = first.id, ...others] = chosen;
  return [one, ...others.slice(0, 1)].map((id) => (models.some((model) => model.id === id) ? id : first.id));
}

/** Requests for "View code": with the typed message; without one, with the last question again; without both, with an example. */
function requestsOf(turns: readonly Turn[], { text, images }: QuestionContent, settings: ChatSettings | null) {
  const lastQuestion = turns.findLastIndex(({ role }) => role === 'user');
  const isEmpty = text === '' && images.length === 0;
  const isExample = isEmpty && lastQuestion < 0;
  const draft: Turn = { id: 'draft', role: 'user', text: isExample ? SUGGESTIONS[0] : text, images };
  const asked = isEmpty && !isExample ? turns.slice(0, lastQuestion + 1) : [...turns, draft];
  const requests = (settings?.models ?? []).map((model, column) => ({
    model,
    body: () => (settings === null ? '' : chatBody({ ...settings, model, column, turns: asked })),
  }));
  return { requests, isExample };
}

/** Status for screen readers: start, end and verification of a response, but not its text. */
function statusOf(turns: readonly Turn[]): string {
  const last = turns.at(-1);
  if (last === undefined || last.role === 'user') return '';
  const answers = last.columns.map(shownAnswer).filter((answer) => answer !== undefined);
  const [first] = answers;
  if (isBusy(turns)) return answers.length > 1 ? 'The responses are arriving.' : 'The response is arriving.';
  if (first === undefined) return '';
  if (answers.length > 1) return 'The responses are complete.';
  switch (first.state) {
    case 'waiting':
    case 'streaming':
    case 'failed':
      return '';
    case 'stopped':
      return 'The response was stopped.';
    case 'complete':
      if (first.check.state === 'verified') return `The response is complete. ${VERDICTS[VERDICT_OF_EVIDENCE[first.check.enclave]].label}.`;
      if (first.check.state === 'failed') return 'The response is complete, but verification failed.';
      return 'The response is complete.';
  }
}

interface StorageSwitch {
  readonly isOn: boolean;
  readonly failed: boolean;
  set(isOn: boolean): void;
}

/**
 * While switched on, stores the conversation and settings in this tab. `wasStored`: initially on, because the page was opened with a stored
 * conversation.
 */
function useStoredConversation(accountId: string, { turns, models, form }: StoredConversation, wasStored: boolean): StorageSwitch {
  const [isOn, setOn] = useState(wasStored);
  const [failed, setFailed] = useState(false);
  const storedTurnCount = useRef(-1);
  useEffect(() => {
    // While a response runs, only a new turn is stored, to avoid a write per piece of text.
    if (!isOn || (isBusy(turns) && storedTurnCount.current === turns.length)) return;
    storedTurnCount.current = turns.length;
    setFailed(!storeConversation(window.sessionStorage, accountId, { turns, models, form }));
  }, [isOn, accountId, turns, models, form]);
  return {
    isOn,
    failed: isOn && failed,
    set(next) {
      setOn(next);
      storedTurnCount.current = -1;
      if (!next) forgetConversation(window.sessionStorage);
    },
  };
}
