/** `useStoredConversation`: while switched on, stores the conversation and settings in this tab. Off by default. */
import { useEffect, useRef, useState } from 'react';
import { isBusy } from './conversation.js';
import { forgetConversation, type StoredConversation, storeConversation } from './stored-conversation.js';

interface StorageSwitch {
  readonly isOn: boolean;
  readonly failed: boolean;
  set(isOn: boolean): void;
}

/** `wasStored`: a stored conversation was found when the page was opened. */
export function useStoredConversation(accountId: string, { turns, models, form }: StoredConversation, wasStored: boolean): StorageSwitch {
  const [isOn, setOn] = useState(wasStored);
  const [failed, setFailed] = useState(false);
  const storedTurns = useRef(-1);
  useEffect(() => {
    // Stores only at the start and after the end of a response, to avoid a write per piece of text.
    if (!isOn || (isBusy(turns) && storedTurns.current === turns.length)) return;
    storedTurns.current = turns.length;
    setFailed(!storeConversation(window.sessionStorage, accountId, { turns, models, form }));
  }, [isOn, accountId, turns, models, form]);
  return {
    isOn,
    failed: isOn && failed,
    set(next) {
      setOn(next);
      storedTurns.current = -1;
      if (!next) forgetConversation(window.sessionStorage);
    },
  };
}
