/** `SessionStatistics`: counts of one connection measured by the coordinator, and the load reported by the provider. */
import type { Hardware, ProviderMessage } from '@inference/protocol';
import { DEFAULT_HOST_STATE, type HostState } from '@inference/scheduler';
import { BoundedMap } from '@inference/scheduler/bounded-map';
import { plausibleDecodeTps, plausiblePrefillTps } from './registration/plausible-hardware.js';

/** Maximum models with a stored weights hash: as many as a provider may offer at once. */
const MAX_MODELS = 64;

const MAX_ANSWERED_MODELS = 256;

export class SessionStatistics {
  /** Running jobs, as reported. */
  reportedJobs = 0;
  /** Last reported rates in tokens per second, limited to the plausible. */
  decodeTps: number | null = null;
  prefillTps: number | null = null;
  /** State of the host, as far as reported. */
  host: HostState = DEFAULT_HOST_STATE;
  #requestsServed = 0;
  #tokensGenerated = 0;
  /** Jobs placed on the provider. */
  placements = 0;
  /** Models with a verified answer on this connection; the oldest are dropped beyond the bound. */
  readonly #answeredModels = new BoundedMap<string, true>(MAX_ANSWERED_MODELS);
  /** Model of the newest job. */
  latestModel: string | null = null;
  #signedWeights: ReadonlyMap<string, string> = new Map();

  get requestsServed(): number {
    return this.#requestsServed;
  }

  get tokensGenerated(): number {
    return this.#tokensGenerated;
  }

  /** Stores reported load. True: placement facts changed. */
  loadReported(load: ProviderMessage & { type: 'load' }, hardware: Hardware): boolean {
    this.reportedJobs = load.active_jobs;
    if (load.decode_tps !== undefined) this.decodeTps = plausibleDecodeTps(load.decode_tps, hardware);
    if (load.prefill_tps !== undefined) this.prefillTps = plausiblePrefillTps(load.prefill_tps, hardware);
    const { thermal, memoryPressure, power } = this.host;
    this.host = {
      thermal: load.thermal ?? thermal,
      memoryPressure: load.memory_pressure ?? memoryPressure,
      power: load.power ?? power,
    };
    return thermal !== this.host.thermal || memoryPressure !== this.host.memoryPressure || power !== this.host.power;
  }

  /** SHA-256 of the weights in the newest verified receipt, by model. A new map after each change. */
  get signedWeights(): ReadonlyMap<string, string> {
    return this.#signedWeights;
  }

  /** Takes in the hash of the weights from a verified receipt; undefined: the receipt names none. */
  weightsSigned(model: string, weightsSha256: string | undefined): void {
    if (this.#signedWeights.get(model) === weightsSha256) return;
    if (!this.#signedWeights.has(model) && this.#signedWeights.size >= MAX_MODELS) return;
    const weights = new Map(this.#signedWeights);
    if (weightsSha256 === undefined) weights.delete(model);
    else weights.set(model, weightsSha256);
    this.#signedWeights = weights;
  }

  answerVerified(model: string): void {
    this.#answeredModels.set(model, true);
  }

  hasAnswered(model: string): boolean {
    return this.#answeredModels.has(model);
  }

  /** Counts a billed job with its completion tokens. */
  jobBilled(tokens: number): void {
    this.#requestsServed++;
    this.#tokensGenerated += tokens;
  }
}
