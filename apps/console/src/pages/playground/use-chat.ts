/** The conversation of the page and the one request that may run in it. All of it is gone with the page. */
import { useEffect, useMemo, useReducer, useRef } from 'react';
import { useMoneyChanged } from '../client/balance-query.js';
import { askWithKey } from './ask.js';
import { askChat, type ChatOutcome } from './ask-chat.js';
import { newNonce } from './call.js';
import { type Answer, chatBody, conversation, newAnswer, type Question, type Turn } from './conversation.js';
import { costOf } from './cost.js';
import type { Parameters } from './parameters.js';
import { usePlaygroundKey } from './playground-key.js';
import type { ProviderFacts } from './provider-facts.js';
import { checkAnswer, downloadFeed } from './verification.js';

export interface ChatSettings {
  readonly model: string;
  readonly system: string;
  readonly parameters: Parameters;
}

export interface Chat {
  readonly turns: readonly Turn[];
  ask(text: string, settings: ChatSettings): void;
  /** Asks once more what a failed answer was to answer. */
  again(answer: Answer, settings: ChatSettings): void;
  /** Ends the running answer here and on the machine. */
  stop(): void;
  clear(): void;
}

export function useChat(): Chat {
  const [turns, dispatch] = useReducer(conversation, []);
  const running = useRef<AbortController | null>(null);
  const left = useRef<AbortController | null>(null);
  const ids = useRef(0);
  const key = usePlaygroundKey();
  const moneyChanged = useMoneyChanged();
  useEffect(() => {
    const leaving = new AbortController();
    left.current = leaving;
    return () => {
      leaving.abort();
      running.current?.abort();
    };
  }, []);

  return useMemo((): Chat => {
    const start = (before: readonly Turn[], question: Question | null, settings: ChatSettings): void => {
      const answer = newAnswer(`a${ids.current++}`, settings.model);
      dispatch({ type: 'asked', question, answer });
      const told = question === null ? before : [...before, question];
      void run(answer.id, chatBody(settings.model, settings.system, told, settings.parameters), settings.model);
    };

    const run = async (id: string, body: string, model: string): Promise<void> => {
      const stop = new AbortController();
      running.current = stop;
      const nonce = newNonce();
      let provider: ProviderFacts | null = null;
      let feed: Promise<unknown> = Promise.resolve(null);
      const change = (changes: Partial<Answer>): void => dispatch({ type: 'changed', id, changes });
      const outcome: ChatOutcome = await askWithKey(key, (secret) =>
        askChat(
          { secret, body, nonce, signal: stop.signal },
          {
            onProvider(facts) {
              provider = facts;
              // While the machine is still there: a record is in the feed only as long as it is connected.
              feed = downloadFeed();
              change({ provider: facts });
            },
            onText: (delta) => dispatch({ type: 'grew', id, delta }),
          },
        ),
      );
      if (running.current === stop) running.current = null;
      const facts = provider as ProviderFacts | null;
      switch (outcome.kind) {
        case 'complete': {
          const { bytes, usage, finishReason } = outcome;
          change({ state: 'complete', usage, finishReason, check: { state: 'checking' } });
          change({
            check: await checkAnswer({ requestBody: body, nonce, model, provider: facts, answer: { kind: 'stream', bytes } }, feed),
          });
          break;
        }
        case 'stopped':
          change({ state: 'stopped' });
          break;
        case 'failed':
          change({ state: 'failed', problem: outcome.problem });
      }
      if (facts?.jobId && left.current !== null) {
        const cost = await costOf(facts.jobId, left.current.signal);
        if (cost !== null) change({ costMicroUsd: cost });
        void moneyChanged();
      }
    };

    return {
      turns,
      ask: (text, settings) => start(turns, { id: `q${ids.current++}`, role: 'user', text }, settings),
      again(answer, settings) {
        dispatch({ type: 'withdrawn', id: answer.id });
        start(
          turns.filter(({ id }) => id !== answer.id),
          null,
          settings,
        );
      },
      stop: () => running.current?.abort(),
      clear() {
        running.current?.abort();
        dispatch({ type: 'cleared' });
      },
    };
  }, [turns, key, moneyChanged]);
}
