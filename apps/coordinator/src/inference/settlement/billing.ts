/**
 * `Billing` creates the bill of each job. `liveJobs` lists the jobs with open bills.
 *
 * The reservation sweeper (`ledger-maintenance.ts`) releases no reservation of a live job.
 */
import { DEFAULT_MAX_TOKENS } from '@inference/formats';
import { type Endpoint, type JobId, withTimeLimit } from '@inference/protocol';
import type { Reservation } from '../../billing/ledger/ledger.js';
import { imageRates, type Price } from '../../billing/prices/price.js';
import { pixelCount } from '../request/image-job.js';
import { type JobRequest, maxPromptTokens, requestedImages } from '../request/job-request.js';
import { sealedNonce } from '../request/sealed-request.js';
import { Bill, type BillDependencies, type BillTerms } from './bill.js';

interface BillingOptions extends Omit<BillDependencies, 'stopping'> {
  readonly prices: { current(model: string): Price };
}

const COUNT_TOKENS = '/v1/messages/count_tokens';

/** A model that may answer: the requested one or a fallback. */
interface BilledModel {
  readonly model: string;
  /** Maximum tokens of prompt and answer together, if known. */
  readonly contextLength: number | null;
  /** Maximum prompt tokens of one image. 0 if the job has no images, or the model cannot read any. */
  readonly maxImageTokens: number;
}

export class Billing {
  readonly #options: BillingOptions;
  readonly #billDeps: BillDependencies;
  readonly #open = new Map<JobId, Bill>();
  readonly #stopping = new AbortController();

  constructor(options: BillingOptions) {
    this.#options = options;
    this.#billDeps = { ...options, stopping: this.#stopping.signal };
  }

  /** Jobs of this process whose bills are not closed yet. */
  get liveJobs(): ReadonlySet<JobId> {
    return new Set(this.#open.keys());
  }

  price(model: string): Price {
    return this.#options.prices.current(model);
  }

  /** Whether requests without image output are free, whatever their length. */
  isFree(endpoint: Endpoint, model: string): boolean {
    const { promptPerMillion, completionPerMillion } = this.price(model);
    return endpoint === COUNT_TOKENS || (promptPerMillion === 0 && completionPerMillion === 0);
  }

  /** Opens the bill of a job. Makes no reservation yet. The caller must close the bill. */
  open(job: JobRequest, models: readonly BilledModel[]): Bill {
    const bill = new Bill(this.#terms(job, models), this.#billDeps);
    this.#open.set(job.jobId, bill);
    void bill.done.then(() => this.#open.delete(job.jobId));
    return bill;
  }

  /** Waits up to `ms` for pending settlements, which get one last retry. */
  async close(ms: number): Promise<void> {
    this.#stopping.abort();
    await withTimeLimit(Promise.all([...this.#open.values()].map((bill) => bill.done)), ms);
  }

  #terms(job: JobRequest, models: readonly BilledModel[]): BillTerms {
    const nonce = job.sealed === null ? null : sealedNonce(job.sealed, job);
    if (job.endpoint === COUNT_TOKENS) return { reservations: [], freeNonce: nonce };
    const reservations = models.map((model) => this.#reservation(job, model));
    return { reservations: nonce === null ? reservations : reservations.map((of) => ({ ...of, nonce })), freeNonce: null };
  }

  #reservation(job: JobRequest, { model, contextLength, maxImageTokens }: BilledModel): Reservation {
    const { maxTokens, choices = 1 } = job.params;
    const price = this.#options.prices.current(model);
    const images = requestedImages(job);
    const pixels = job.images === null ? (job.sealed?.imagePixels ?? null) : pixelCount(job.images.pixels);
    const isEmbedding = job.endpoint === '/v1/embeddings';
    // An embedding request may contain many texts, each as long as the context.
    const max = isEmbedding ? Number.MAX_SAFE_INTEGER : (contextLength ?? Number.MAX_SAFE_INTEGER);
    return {
      jobId: job.jobId,
      accountId: job.accountId,
      apiKeyId: job.apiKeyId,
      keySpendLimit: job.keySpendLimit,
      keyBudget: job.keyBudget,
      model,
      endpoint: job.endpoint,
      price: pixels === null ? price : { ...price, ...imageRates(price, pixels) },
      maxPromptTokens: Math.min(maxPromptTokens(job, maxImageTokens), max),
      ...(images === 0 ? {} : { images }),
      maxCompletionTokens: isEmbedding || images > 0 ? 0 : Math.min(maxTokens ?? DEFAULT_MAX_TOKENS, choices * max),
      at: this.#options.now(),
    };
  }
}
