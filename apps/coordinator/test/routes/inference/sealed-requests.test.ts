/** `POST /v1/e2e/requests` with real sealing on both ends: delivery, settlement, refusals and errors. */
import { E2E_RESPONSE_CONTENT_TYPE, openE2eReceipt } from '@inference/protocol';
import { verifyP256 } from '@inference/protocol/crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Harness, startHarness } from '../../support/harness.js';
import type { ScriptedSealedJob } from '../../support/scripted-sealed-job.js';
import { openAnswer, postSealed, seal } from '../../support/sealed-calls.js';

const answers = (job: ScriptedSealedJob): void => job.answer();

describe('a sealed request', () => {
  let coordinator: Harness;
  beforeAll(async () => {
    coordinator = await startHarness();
  });
  afterAll(() => coordinator.close());

  it('is answered in one piece, charged and receipted', async () => {
    const provider = await coordinator.provider({ onSealedJob: answers });
    const before = await coordinator.money();
    const sealed = seal([provider]);
    const response = await postSealed(coordinator, sealed.bytes);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe(E2E_RESPONSE_CONTENT_TYPE);
    const jobId = response.headers.get('x-inference-job-id') ?? '';
    const answer = await openAnswer(sealed, response);
    expect(answer.head.status).toBe(200);
    expect(answer.text).toBe('{"text":"Hello there"}');
    const { value } = openE2eReceipt(answer.proof.receipt, provider.enclave.publicKey, verifyP256);
    expect(value.sealed_request_sha256).toBe(sealed.sealedRequestSha256);
    expect(value.usage?.completion_tokens).toBe(2);
    const after = await coordinator.money();
    expect(after.balance).toBeLessThan(before.balance);
    expect(after.reserved).toBe(0);
    const stored = (await (await coordinator.get(`/v1/receipts/${jobId}`)).json()) as { claims: unknown; response_hash: string };
    expect(stored.claims).toEqual(value);
    expect(stored.response_hash).toBe(value.sealed_response_sha256);
    provider.close();
  });
  it('is streamed', async () => {
    const provider = await coordinator.provider({ onSealedJob: answers });
    const sealed = seal([provider], { stream: true });
    const answer = await openAnswer(sealed, await postSealed(coordinator, sealed.bytes));
    expect(answer.head.content_type).toContain('text/event-stream');
    expect(answer.text).toBe('data: "Hello"\n\ndata: " there"\n\n');
    provider.close();
  });
});
