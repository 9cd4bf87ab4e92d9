/**
 * The inference endpoints, which differ in their formats alone: from the client's exact bytes to a verified answer, streamed
 * or whole. Counting tokens is a job like any other.
 */
import { apiError, formatFor } from '@inference/formats';
import { type Endpoint, EndpointSchema } from '@inference/protocol';
import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify';
import { ClientConnection } from '../inference/client-connection.js';
import type { Delivery } from '../inference/delivery.js';
import { type JobRequest, readJobRequest } from '../inference/job-request.js';
import type { JobEnd, JobRunner } from '../inference/job-runner.js';
import { PlainDelivery } from '../inference/plain-delivery.js';
import { StreamDelivery } from '../inference/stream-delivery.js';
import type { JobTimings } from '../inference/timings.js';
import { errorFacts, type Log } from '../log.js';
import type { ReceiptBook } from '../store/receipt-book.js';
import { accountOf } from './authenticate.js';

export interface InferenceRoutes {
  readonly runner: JobRunner;
  readonly receipts: ReceiptBook;
  readonly timings: JobTimings;
  readonly log: Log;
  readonly now: () => number;
}

const NO_BODY = new Uint8Array(0);

export function addInference(server: FastifyInstance, guard: onRequestHookHandler, routes: InferenceRoutes): void {
  for (const { const: endpoint } of EndpointSchema.anyOf) addEndpoint(server, guard, routes, endpoint);
}

function addEndpoint(server: FastifyInstance, guard: onRequestHookHandler, routes: InferenceRoutes, endpoint: Endpoint): void {
  server.post(endpoint, { onRequest: guard }, async (request, reply) => {
    const job = readJobRequest({
      endpoint,
      body: request.body instanceof Uint8Array ? request.body : NO_BODY,
      accountId: accountOf(request),
      nonceHeader: singleHeader(request, 'x-inference-nonce'),
      now: routes.now(),
    });
    reply.hijack();
    const client = new ClientConnection(reply.raw, routes.timings.clientDrainMs);
    await serve(routes, job, client, deliveryFor(routes, job, client, request));
  });
}

async function serve(routes: InferenceRoutes, job: JobRequest, client: ClientConnection, delivery: Delivery): Promise<void> {
  const started = routes.now();
  try {
    const end = await routes.runner.run(job, delivery, client.signal);
    if (end.kind === 'delivered') keepReceipt(routes, job, end);
    logJob(routes, job, end, routes.now() - started);
  } catch (error) {
    routes.log.error({ job: job.jobId, error: errorFacts(error) }, 'job crashed');
    delivery.fail(apiError('internal'));
  }
}

function deliveryFor(routes: InferenceRoutes, job: JobRequest, client: ClientConnection, request: FastifyRequest): Delivery {
  const shared = { client, format: formatFor(job.endpoint), requestId: request.id };
  if (!job.facts.stream) return new PlainDelivery(shared);
  return new StreamDelivery({
    ...shared,
    answer: job.answer,
    envelope: job.envelope,
    jobId: job.jobId,
    trailers: /(?:^|,)\s*trailers\s*(?:[;,]|$)/i.test(singleHeader(request, 'te') ?? ''),
    timings: routes.timings,
  });
}

function keepReceipt(routes: InferenceRoutes, job: JobRequest, { signed }: JobEnd & { kind: 'delivered' }): void {
  routes.receipts.add({
    jobId: job.jobId,
    accountId: job.accountId,
    receipt: signed.receipt,
    receiptSignature: signed.receiptSignature,
    responseSignature: signed.signature,
    createdAt: routes.now(),
  });
}

/** One line per job. The model's name is logged once a provider has taken the job: until then it is only the client's text. */
function logJob(routes: InferenceRoutes, job: JobRequest, end: JobEnd, ms: number): void {
  const facts = {
    job: job.jobId,
    endpoint: job.endpoint,
    provider: end.session?.registration.identity.providerId ?? null,
    model: end.session === null ? null : job.facts.model,
    stream: job.facts.stream,
    ms,
    attempts: end.attempts,
  };
  switch (end.kind) {
    case 'delivered': {
      const { prompt_tokens, completion_tokens } = end.receipt.usage;
      routes.log.info({ ...facts, status: 'delivered', prompt_tokens, completion_tokens }, 'job');
      return;
    }
    case 'client_gone':
      routes.log.info({ ...facts, status: 'client_gone' }, 'job');
      return;
    case 'failed': {
      const line = { ...facts, status: end.error.code, reason: end.reason, ...(end.problem === undefined ? {} : { problem: end.problem }) };
      if (end.problem === undefined) routes.log.info(line, 'job');
      else routes.log.error(line, 'job');
    }
  }
}

function singleHeader(request: FastifyRequest, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
}
