/** Conversation of the page and its single running request. Nothing outlives the page. */
import { useMemo, useReducer, useRef } from 'react';
import { useInvalidateMoney } from '../../../features/account/balance.js';
import { newNonce } from '../requests/call.js';
import { type ChatListener, sendChatRequest } from '../requests/chat-request.js';
import { sendWithKey, usePlaygroundKey } from '../requests/playground-key.js';
import type { ProviderFacts } from '../requests/provider-facts.js';
import { requestCost } from '../requests/request-cost.js';
import { useSingleRequest } from '../requests/use-single-request.js';
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
  retry(answer: Answer, settings: ChatSettings): void;
  /** Cancels the running response in the page and on the provider. */
  stop(): void;
  clear(): void;
}

export function useChat(): Chat {
  const [turns, dispatch] = useReducer(conversation, []);
  const request = useSingleRequest();
  const ids = useRef(0);
  const key = usePlaygroundKey();
  const invalidateMoney = useInvalidateMoney();

  return useMemo((): Chat => {
    const start = (before: readonly Turn[], question: Question | null, settings: ChatSettings): void => {
      const answer = newAnswer(`a${ids.current++}`, settings.model);
      dispatch({ type: 'sent', question, answer });
      const history = question === null ? before : [...before, question];
      void run(answer.id, chatBody(settings.model, settings.system, history, settings.parameters));
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
        onText: (delta) => dispatch({ type: 'appended', id, delta }),
      };
      const outcome = await request.run((signal) =>
        sendWithKey(key, (secret) => sendChatRequest({ secret, body, nonce, signal }, listener)),
      );
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
        const cost = await requestCost(facts.jobId, request.left);
        if (cost !== null) change({ costMicroUsd: cost });
        void invalidateMoney();
      }
    };

    return {
      turns,
      ask: (text, settings) => start(turns, { id: `q${ids.current++}`, role: 'user', text }, settings),
      retry(answer, settings) {
        dispatch({ type: 'removed', id: answer.id });
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
  }, [turns, request, key, invalidateMoney]);
}
