/** Images of the page and its single running request. Nothing outlives the page. */
import { useEffect, useMemo, useRef, useState } from 'react';
import { useMoneyChanged } from '../../../features/account/balance.js';
import { newNonce } from '../requests/call.js';
import { askImages, type ImageAnswer, type ImageOrder, imageBody, imageType } from '../requests/image-request.js';
import { usePlaygroundKey } from '../requests/playground-key.js';
import type { Problem } from '../requests/problems.js';
import type { ProviderFacts } from '../requests/provider-facts.js';
import { costOf } from '../requests/request-cost.js';
import { askWithKey } from '../requests/send-with-key.js';
import { useOneRequest } from '../requests/use-single-request.js';
import type { AnswerCheck } from '../verification/answer-check.js';
import { checkAnswer, downloadFeed } from '../verification/check-answer.js';

export interface Drawing {
  readonly id: string;
  readonly order: ImageOrder;
  readonly state: 'waiting' | 'complete' | 'stopped' | 'failed';
  /** Object URLs of the verified bytes in memory. */
  readonly images: readonly string[];
  readonly provider: ProviderFacts | null;
  readonly problem: Problem | null;
  readonly check: AnswerCheck;
  readonly costMicroUsd: number | null;
}

interface Drawings {
  /** The newest first. */
  readonly list: readonly Drawing[];
  draw(order: ImageOrder): void;
  again(drawing: Drawing): void;
  stop(): void;
}

export function useImages(): Drawings {
  const [list, setList] = useState<readonly Drawing[]>([]);
  const request = useOneRequest();
  const addresses = useRef<string[]>([]);
  const ids = useRef(0);
  const key = usePlaygroundKey();
  const moneyChanged = useMoneyChanged();
  useEffect(
    () => () => {
      for (const address of addresses.current.splice(0)) URL.revokeObjectURL(address);
    },
    [],
  );

  return useMemo((): Drawings => {
    const change = (id: string, changes: Partial<Drawing>): void =>
      setList((before) => before.map((drawing) => (drawing.id === id ? { ...drawing, ...changes } : drawing)));

    const addressOf = (bytes: Uint8Array): string => {
      const address = URL.createObjectURL(new Blob([bytes as Uint8Array<ArrayBuffer>], { type: imageType(bytes) }));
      addresses.current.push(address);
      return address;
    };

    const check = async (id: string, sent: { body: string; nonce: string }, answer: ImageAnswer): Promise<void> => {
      const { bytes, headers, images, provider } = answer;
      change(id, { state: 'complete', provider, images: images.map(addressOf), check: { state: 'checking' } });
      const evidence = { requestBody: sent.body, nonce: sent.nonce, endpoint: '/v1/images/generations', provider };
      const result = await checkAnswer({ ...evidence, answer: { kind: 'plain', bytes, headers, images } }, downloadFeed());
      change(id, { check: result });
      if ((result.state === 'verified' || result.state === 'failed') && result.jobId !== null && request.left !== null) {
        const cost = await costOf(result.jobId, request.left);
        if (cost !== null) change(id, { costMicroUsd: cost });
      }
      void moneyChanged();
    };

    const draw = async (order: ImageOrder): Promise<void> => {
      const id = `d${ids.current++}`;
      const none = { images: [], provider: null, problem: null, check: { state: 'none' }, costMicroUsd: null } as const;
      setList((before) => [{ id, order, state: 'waiting', ...none }, ...before]);
      const sent = { body: imageBody(order), nonce: newNonce() };
      const outcome = await request.run((signal) => askWithKey(key, (secret) => askImages({ ...sent, secret, signal })));
      switch (outcome.kind) {
        case 'complete':
          return check(id, sent, outcome.answer);
        case 'stopped':
          return change(id, { state: 'stopped' });
        case 'failed':
          return change(id, { state: 'failed', problem: outcome.problem });
      }
    };

    return {
      list,
      draw: (order) => void draw(order),
      again(drawing) {
        setList((before) => before.filter(({ id }) => id !== drawing.id));
        void draw(drawing.order);
      },
      stop: request.stop,
    };
  }, [list, request, key, moneyChanged]);
}
