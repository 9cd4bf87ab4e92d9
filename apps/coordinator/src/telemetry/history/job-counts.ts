/** `JobCounts` reads how much the job metrics (Prometheus counters and histograms) have increased since the previous reading. */
import type { Registry } from 'prom-client';
import { addCounts, type Counts, type HealthFigures } from './health-figures.js';

type JobFigures = Pick<HealthFigures, 'jobs' | 'failedAttempts' | 'jobSeconds' | 'firstTokenSeconds'>;

/** A value of a metric, as returned by prom-client. */
interface Sample {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  /** For histograms: the metric's name with `_bucket`, `_sum` or `_count`. */
  readonly metricName?: string;
}

export class JobCounts {
  readonly #registry: Registry;
  #previous: JobFigures = { jobs: {}, failedAttempts: {}, jobSeconds: {}, firstTokenSeconds: {} };

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  /** Increases since the previous call, or since the process started. */
  async sincePrevious(): Promise<JobFigures> {
    const current: JobFigures = {
      jobs: await this.#byLabel('inference_jobs_total', 'end'),
      failedAttempts: await this.#byLabel('inference_failed_attempts_total', 'reason'),
      jobSeconds: await this.#byBucket('inference_job_seconds'),
      firstTokenSeconds: await this.#byBucket('inference_first_token_seconds'),
    };
    const previous = this.#previous;
    this.#previous = current;
    return {
      jobs: difference(current.jobs, previous.jobs),
      failedAttempts: difference(current.failedAttempts, previous.failedAttempts),
      jobSeconds: bucketDifference(current.jobSeconds, previous.jobSeconds),
      firstTokenSeconds: bucketDifference(current.firstTokenSeconds, previous.firstTokenSeconds),
    };
  }

  /** Values of a counter by one label, summed over the others. */
  async #byLabel(name: string, label: string): Promise<Counts> {
    let counts: Counts = {};
    for (const { labels, value } of await this.#samples(name)) counts = addCounts(counts, { [String(labels[label])]: value });
    return counts;
  }

  /** Observations of a histogram per bucket. The metric's own buckets are cumulative: each includes the lower ones. */
  async #byBucket(name: string): Promise<Counts> {
    let cumulative: Counts = {};
    for (const { labels, value, metricName } of await this.#samples(name)) {
      if (metricName === `${name}_bucket`) cumulative = addCounts(cumulative, { [String(labels.le)]: value });
    }
    let below = 0;
    const own: Record<string, number> = {};
    for (const [bound, count] of Object.entries(cumulative).sort(([a], [b]) => boundOf(a) - boundOf(b))) {
      own[bound] = count - below;
      below = count;
    }
    return own;
  }

  async #samples(name: string): Promise<readonly Sample[]> {
    const metric = this.#registry.getSingleMetric(name);
    if (metric === undefined) throw new Error(`there is no metric ${name}`);
    return (await metric.get()).values as readonly Sample[];
  }
}

function boundOf(text: string): number {
  return text === '+Inf' ? Number.POSITIVE_INFINITY : Number(text);
}

/** Increases per bucket. Includes empty buckets, because quantiles need all bounds. `{}` if all are empty. */
function bucketDifference(current: Counts, previous: Counts): Counts {
  const increases = Object.entries(current).map(([bound, count]) => [bound, count - (previous[bound] ?? 0)] as const);
  return increases.some(([, count]) => count > 0) ? Object.fromEntries(increases) : {};
}

/** Increases by key. Omits keys without an increase. */
function difference(current: Counts, previous: Counts): Counts {
  return Object.fromEntries(
    Object.entries(current).flatMap(([key, count]) => {
      const increase = count - (previous[key] ?? 0);
      return increase > 0 ? [[key, increase]] : [];
    }),
  );
}
