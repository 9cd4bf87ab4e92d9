/** `TurnList`: the questions and replies of a conversation. Scrolls with a running response and manages the focus after deletions. */
import { useEffect, useRef } from 'react';
import type { Turn } from './conversation.js';
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
  const send = (action: (settings: ChatSettings) => void) => {
    if (usable !== null) action(usable);
  };
  const remove = (turn: Turn, index: number): void => {
    // Moves the focus from the removed message to its neighbour.
    const neighbour = items.current?.children[index + 1] ?? items.current?.children[index - 1];
    chat.remove(turn);
    if (neighbour instanceof HTMLElement) neighbour.focus();
    else onDone();
  };
  return (
    <>
      <ol className="turns" aria-label="Messages" ref={items}>
        {turns.map((turn, index) => (
          <li key={turn.id} className="turn" data-role={turn.role} tabIndex={-1}>
            {turn.role === 'user' ? (
              <>
                <span className="visually-hidden">You: </span>
                <QuestionView
                  question={turn}
                  isLast={turn === last}
                  canSend={usable !== null}
                  onSend={(content) => {
                    send((now) => chat.edit(turn, content, now));
                    onDone();
                  }}
                  canDelete={!busy}
                  onDelete={() => remove(turn, index)}
                />
              </>
            ) : (
              <ReplyView
                reply={turn}
                isLast={turn === last}
                canSend={usable !== null}
                onRegenerate={(column) => send((now) => chat.regenerate(turn, column, now))}
                onShow={(column, version) => chat.show(turn, column, version)}
                canDelete={!busy}
                onDelete={() => remove(turn, index)}
              />
            )}
          </li>
        ))}
      </ol>
      <div ref={end} className="turns-end" />
    </>
  );
}
