/** Conversation of the page and its single running request. Nothing outlives the page. */
import { useMemo, useReducer, useRef } from 'react';
import { useMoneyChanged } from '../../../features/account/balance.js';
import { newNonce } from '../requests/call.js';
import { askChat, type ChatListener } from '../requests/chat-request.js';
import { usePlaygroundKey } from '../requests/playground-key.js';
import type { ProviderFacts } from '../requests/provider-facts.js';
import { costOf } from '../requests/request-cost.js';
import { askWithKey } from '../requests/send-with-key.js';
import { useOneRequest } from '../requests/use-single-request.js';
import { checkAnswer, downloadFeed } from '../verification/check-answer.js';
import { type Answer, chatBody, conversation, newAnswer, type Question, type Turn } from './conversation.js';
import type { Parameters } from './parameters.js';

export interface ChatSettings {
  readonly model: string;
  readonly system: string;
  readonly parameters: Parameters;
}

interface Chat {
  readonly turns: readonly Turn[];
  ask(text: string, settings: ChatSettings): void;
  /** Sends the question of a failed response again. */
  again(answer: Answer, settings: ChatSettings): void;
  /** Ends the running answer here and on the machine. */
  stop(): void;
  clear(): void;
}

export function useChat(): Chat {
  const [turns, dispatch] = useReducer(conversation, []);
  const request = useOneRequest();
  const ids = useRef(0);
  const key = usePlaygroundKey();
  const moneyChanged = useMoneyChanged();

  return useMemo((): Chat => {
    const start = (before: readonly Turn[], question: Question | null, settings: ChatSettings): void => {
      const answer = newAnswer(`a${ids.current++}`, settings.model);
      dispatch({ type: 'asked', question, answer });
      const told = question === null ? before : [...before, question];
      void run(answer.id, chatBody(settings.model, settings.system, told, settings.parameters));
    };

    const run = async (id: string, body: string): Promise<void> => {
      const nonce = newNonce();
      let provider: ProviderFacts | null = null;
      let feed: Promise<unknown> = Promise.resolve(null);
      const change = (changes: Partial<Answer>): void => dispatch({ type: 'changed', id, changes });
      const listener: ChatListener = {
        onProvider(facts) {
          provider = facts;
          // Fetched while the response runs: the feed lists a provider only while it is connected.
          feed = downloadFeed();
          change({ provider: facts });
        },
        onText: (delta) => dispatch({ type: 'grew', id, delta }),
      };
      const outcome = await request.run((signal) => askWithKey(key, (secret) => askChat({ secret, body, nonce, signal }, listener)));
      const facts = provider as ProviderFacts | null;
      switch (outcome.kind) {
        case 'complete': {
          const { bytes, usage, finishReason } = outcome;
          change({ state: 'complete', usage, finishReason, check: { state: 'checking' } });
          change({
            check: await checkAnswer(
              { requestBody: body, nonce, endpoint: '/v1/chat/completions', provider: facts, answer: { kind: 'stream', bytes } },
              feed,
            ),
          });
          break;
        }
        case 'stopped':
          change({ state: 'stopped' });
          break;
        case 'failed':
          change({ state: 'failed', problem: outcome.problem });
      }
      if (facts?.jobId && request.left !== null) {
        const cost = await costOf(facts.jobId, request.left);
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
      stop: request.stop,
      clear() {
        request.stop();
        dispatch({ type: 'cleared' });
      },
    };
  }, [turns, request, key, moneyChanged]);
}
