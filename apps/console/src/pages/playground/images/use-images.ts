/** `useImages`: image requests and their results, which are lost when the user leaves the image mode. */
import { useEffect, useMemo, useRef, useState } from 'react';
import { useInvalidateBilling } from '../../../features/account/balance.js';
import { newNonce } from '../requests/call.js';
import { type ImageAnswer, type ImageRequest, imageBody, imageType, sendImageRequest } from '../requests/image-request.js';
import { sendWithKey, usePlaygroundKey } from '../requests/playground-key.js';
import type { Problem } from '../requests/problems.js';
import type { ProviderFacts } from '../requests/provider-facts.js';
import { requestCost } from '../requests/request-cost.js';
import { useRequests } from '../requests/use-requests.js';
import { type AnswerCheck, checkAnswer, downloadFeed } from '../verification/check-answer.js';

export interface ImageJob {
  readonly id: string;
  readonly input: ImageRequest;
  readonly state: 'waiting' | 'complete' | 'stopped' | 'failed';
  readonly images: readonly ShownImage[];
  readonly provider: ProviderFacts | null;
  readonly problem: Problem | null;
  readonly check: AnswerCheck;
  readonly costMicroUsd: number | null;
}

export interface ShownImage {
  /** Object URL of the received bytes, which verification checks. */
  readonly objectUrl: string;
  /** Media type. */
  readonly type: string;
}

interface ImageJobs {
  /** Newest first. */
  readonly list: readonly ImageJob[];
  generate(input: ImageRequest): void;
  retry(job: ImageJob): void;
  stop(): void;
}

export function useImages(): ImageJobs {
  const [list, setList] = useState<readonly ImageJob[]>([]);
  const request = useRequests();
  const objectUrls = useRef<string[]>([]);
  const ids = useRef(0);
  const key = usePlaygroundKey();
  const invalidateBilling = useInvalidateBilling();
  useEffect(
    () => () => {
      for (const objectUrl of objectUrls.current.splice(0)) URL.revokeObjectURL(objectUrl);
    },
    [],
  );

  return useMemo((): ImageJobs => {
    const change = (id: string, changes: Partial<ImageJob>): void =>
      setList((before) => before.map((job) => (job.id === id ? { ...job, ...changes } : job)));

    const shownImage = (bytes: Uint8Array): ShownImage => {
      const type = imageType(bytes);
      const objectUrl = URL.createObjectURL(new Blob([bytes as Uint8Array<ArrayBuffer>], { type }));
      objectUrls.current.push(objectUrl);
      return { objectUrl, type };
    };

    const check = async (id: string, sent: { body: string; nonce: string }, answer: ImageAnswer): Promise<void> => {
      const { bytes, headers, images, provider } = answer;
      change(id, { state: 'complete', provider, images: images.map(shownImage), check: { state: 'checking' } });
      const evidence = { requestBody: sent.body, nonce: sent.nonce, endpoint: '/v1/images/generations', provider };
      const result = await checkAnswer({ ...evidence, answer: { kind: 'plain', bytes, headers, images } }, downloadFeed());
      change(id, { check: result });
      if ((result.state === 'verified' || result.state === 'failed') && result.jobId !== null && request.leaveSignal !== null) {
        const cost = await requestCost(result.jobId, request.leaveSignal);
        if (cost !== null) change(id, { costMicroUsd: cost });
      }
      void invalidateBilling();
    };

    const generate = async (input: ImageRequest): Promise<void> => {
      const id = `d${ids.current++}`;
      const none = { images: [], provider: null, problem: null, check: { state: 'none' }, costMicroUsd: null } as const;
      setList((before) => [{ id, input, state: 'waiting', ...none }, ...before]);
      const sent = { body: imageBody(input), nonce: newNonce() };
      const outcome = await request.run((signal) => sendWithKey(key, (secret) => sendImageRequest({ ...sent, secret, signal })));
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
      generate: (input) => void generate(input),
      retry(job) {
        setList((before) => before.filter(({ id }) => id !== job.id));
        void generate(job.input);
      },
      stop: request.stop,
    };
  }, [list, request, key, invalidateBilling]);
}
