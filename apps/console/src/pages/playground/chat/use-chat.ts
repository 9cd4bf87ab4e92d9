/** `useChat`: state of the conversation, and functions that send requests and change its messages. */
import { useMemo, useReducer, useRef } from 'react';
import { useInvalidateBilling } from '../../../features/account/balance.js';
import { newNonce } from '../requests/call.js';
import { type ChatListener, sendChatRequest } from '../requests/chat-request.js';
import { sendWithKey, usePlaygroundKey } from '../requests/playground-key.js';
import type { ProviderFacts } from '../requests/provider-facts.js';
import { requestCost } from '../requests/request-cost.js';
import { useRequests } from '../requests/use-requests.js';
import { checkAnswer, downloadFeed } from '../verification/check-answer.js';
import {
  type Answer,
  chatBody,
  newAnswer,
  type Question,
  type QuestionContent,
  type Reply,
  reduceConversation,
  type Turn,
} from './conversation.js';
import type { Parameters } from './parameters.js';

export interface ChatSettings {
  /** The model to ask; two models to compare. */
  readonly models: readonly string[];
  readonly system: string;
  readonly parameters: Parameters;
}

export interface Chat {
  readonly turns: readonly Turn[];
  ask(content: QuestionContent, settings: ChatSettings): void;
  /** Sends a question again, with new content. Later messages are dropped. */
  edit(question: Question, content: QuestionContent, settings: ChatSettings): void;
  /** Requests another version of a response. A failed version is replaced. */
  regenerate(reply: Reply, column: number, settings: ChatSettings): void;
  show(reply: Reply, column: number, version: number): void;
  remove(turn: Turn): void;
  /** Cancels the running responses in the page and on the providers. */
  stop(): void;
  clear(): void;
}

export function useChat(initial: readonly Turn[]): Chat {
  const [turns, dispatch] = useReducer(reduceConversation, initial);
  const requests = useRequests();
  const ids = useRef(0);
  const key = usePlaygroundKey();
  const invalidateBilling = useInvalidateBilling();

  return useMemo((): Chat => {
    const newId = (): string => `n${ids.current++}`;

    const start = (before: readonly Turn[], { text, images }: QuestionContent, { models, system, parameters }: ChatSettings): void => {
      const question: Question = { id: newId(), role: 'user', text, ...(images.length === 0 ? {} : { images }) };
      const answers = models.map((model) => newAnswer(newId(), model));
      const columns = answers.map((answer) => ({ versions: [answer], shown: 0 }));
      dispatch({ type: 'asked', before: before.length, question, reply: { id: newId(), role: 'assistant', columns } });
      const asked = [...before, question];
      for (const [column, { id, model }] of answers.entries()) {
        void run(id, chatBody({ model, system, turns: asked, column, parameters }));
      }
    };

    const run = async (answerId: string, body: string): Promise<void> => {
      const nonce = newNonce();
      const sentAt = performance.now();
      let firstTextMs: number | null = null;
      let provider: ProviderFacts | null = null;
      let feed: Promise<unknown> = Promise.resolve(null);
      const change = (changes: Partial<Answer>): void => dispatch({ type: 'changed', answerId, changes });
      const listener: ChatListener = {
        onProvider(facts) {
          provider = facts;
          // The feed lists only connected providers, so it is fetched while the response runs.
          feed = downloadFeed();
          change({ provider: facts });
        },
        onText(delta) {
          firstTextMs ??= performance.now() - sentAt;
          dispatch({ type: 'appended', answerId, delta });
        },
      };
      const outcome = await requests.run((signal) =>
        sendWithKey(key, (secret) => sendChatRequest({ secret, body, nonce, signal }, listener)),
      );
      const timing = { firstTextMs, totalMs: performance.now() - sentAt };
      const facts = provider as ProviderFacts | null;
      switch (outcome.kind) {
        case 'complete': {
          const { bytes, usage, finishReason } = outcome;
          change({ state: 'complete', usage, finishReason, timing, check: { state: 'checking' } });
          change({
            check: await checkAnswer(
              { requestBody: body, nonce, endpoint: '/v1/chat/completions', provider: facts, answer: { kind: 'stream', bytes } },
              feed,
            ),
          });
          break;
        }
        case 'stopped':
          change({ state: 'stopped', timing });
          break;
        case 'failed':
          change({ state: 'failed', problem: outcome.problem });
      }
      if (facts?.jobId && requests.leaveSignal !== null) {
        const cost = await requestCost(facts.jobId, requests.leaveSignal);
        if (cost !== null) change({ costMicroUsd: cost });
        void invalidateBilling();
      }
    };

    return {
      turns,
      ask: (content, settings) => start(turns, content, settings),
      edit(question, content, settings) {
        const at = turns.indexOf(question);
        if (at >= 0) start(turns.slice(0, at), content, settings);
      },
      regenerate(reply, column, { models, system, parameters }) {
        const at = turns.indexOf(reply);
        const model = models[column] ?? reply.columns[column]?.versions[0]?.model;
        if (at < 0 || model === undefined) return;
        const answer = newAnswer(newId(), model);
        dispatch({ type: 'regenerated', id: reply.id, column, answer });
        void run(answer.id, chatBody({ model, system, turns: turns.slice(0, at), column, parameters }));
      },
      show: ({ id }, column, version) => dispatch({ type: 'shown', id, column, version }),
      remove: ({ id }) => dispatch({ type: 'deleted', id }),
      stop: requests.stop,
      clear() {
        requests.stop();
        dispatch({ type: 'cleared' });
      },
    };
  }, [turns, requests, key, invalidateBilling]);
}
