/** `TurnList`: the questions and replies of a conversation. Scrolls with a running response and manages the focus after deletions. */
import { useCallback, useEffect, useLayoutEffect, useRef } from 'react';
import type { Question, QuestionContent, Reply, Turn } from './conversation.js';
import { QuestionView } from './question-view.js';
import { ReplyView } from './reply-view.js';
import type { Chat, ChatSettings } from './use-chat.js';

interface TurnListProps {
  readonly chat: Chat;
  readonly busy: boolean;
  /** Null: no request can be sent now. */
  readonly settings: ChatSettings | null;
  /** Moves the focus to the input below the list. */
  readonly onDone: () => void;
}

export function TurnList({ chat, busy, settings, onDone }: TurnListProps) {
  const { turns } = chat;
  const items = useRef<HTMLOListElement>(null);
  const end = useRef<HTMLDivElement>(null);
  const last = turns.at(-1);
  // Scrolls with the response unless the user has scrolled up.
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs after every change of the conversation
  useEffect(() => {
    const { scrollHeight, scrollTop, clientHeight } = document.documentElement;
    if (last?.role === 'user' || scrollHeight - scrollTop - clientHeight < 240) end.current?.scrollIntoView({ block: 'nearest' });
  }, [turns]);
  const usable = busy ? null : settings;
  const send = useStableCallback((question: Question, content: QuestionContent): void => {
    if (usable !== null) chat.edit(question, content, usable);
    onDone();
  });
  const regenerate = useStableCallback((reply: Reply, column: number): void => {
    if (usable !== null) chat.regenerate(reply, column, usable);
  });
  const show = useStableCallback((reply: Reply, column: number, version: number): void => chat.show(reply, column, version));
  const remove = useStableCallback((turn: Turn): void => {
    const index = turns.indexOf(turn);
    // Moves the focus from the removed message to its neighbour.
    const neighbour = items.current?.children[index + 1] ?? items.current?.children[index - 1];
    chat.remove(turn);
    if (neighbour instanceof HTMLElement) neighbour.focus();
    else onDone();
  });
  return (
    <>
      <ol className="turns" aria-label="Messages" ref={items}>
        {turns.map((turn) => (
          <li key={turn.id} className="turn" data-role={turn.role} tabIndex={-1}>
            {turn.role === 'user' ? (
              <>
                <span className="visually-hidden">You: </span>
                <QuestionView
                  question={turn}
                  isLast={turn === last}
                  canSend={usable !== null}
                  onSend={send}
                  canDelete={!busy}
                  onDelete={remove}
                />
              </>
            ) : (
              <ReplyView
                reply={turn}
                isLast={turn === last}
                canSend={usable !== null}
                onRegenerate={regenerate}
                onShow={show}
                canDelete={!busy}
                onDelete={remove}
              />
            )}
          </li>
        ))}
      </ol>
      <div ref={end} className="turns-end" />
    </>
  );
}

/** Returns a function that never changes and calls the newest `callback`, so that memoized components do not render again. */
function useStableCallback<Args extends readonly unknown[]>(callback: (...args: Args) => void) {
  const newest = useRef(callback);
  useLayoutEffect(() => {
    newest.current = callback;
  });
  return useCallback((...args: Args): void => newest.current(...args), []);
}
