/**
 * `SessionStatistics`: figures of one provider connection. Part of `ProviderSession`; read by placement and provider snapshots.
 *
 * Load and host state are reported by the provider. Jobs and tokens are counted by the coordinator; weights come from verified receipts.
 */
import type { Hardware, ProviderMessage } from '@inference/protocol';
import { DEFAULT_HOST_STATE, type HostState } from '@inference/scheduler';
import { BoundedMap } from '@inference/scheduler/bounded-map';
import { plausibleDecodeTps, plausiblePrefillTps } from './registration/plausible-hardware.js';

/** Maximum models with a stored weights hash: the maximum of one `models` message. The least recently signed is dropped. */
const MAX_SIGNED_MODELS = 64;
/** Maximum models of verified answers. */
const MAX_ANSWERED_MODELS = 256;

export class SessionStatistics {
  /** Running jobs, as the provider last reported. */
  reportedJobs = 0;
  /** Newest reported rates in tokens per second, lowered to the chip's plausible maximum. Null: not reported. */
  decodeTps: number | null = null;
  prefillTps: number | null = null;
  /** Reported state of the host, with defaults for members that were not reported. */
  host: HostState = DEFAULT_HOST_STATE;
  /** Number of jobs placed on the provider. */
  placements = 0;
  /** Model of the newest job. */
  latestModel: string | null = null;
  #requestsServed = 0;
  #tokensGenerated = 0;
  readonly #answeredModels = new BoundedMap<string, true>(MAX_ANSWERED_MODELS);
  #signedWeights = new BoundedMap<string, string>(MAX_SIGNED_MODELS);

  /** Number of billed jobs. */
  get requestsServed(): number {
    return this.#requestsServed;
  }

  /** Completion tokens of billed jobs. */
  get tokensGenerated(): number {
    return this.#tokensGenerated;
  }

  /** SHA-256 of the weights in the newest verified receipt, by model. A new map after each change. */
  get signedWeights(): ReadonlyMap<string, string> {
    return this.#signedWeights;
  }

  /** Whether a verified answer of the model measured throughput on this connection. Remembers {@link MAX_ANSWERED_MODELS} models. */
  hasVerifiedAnswer(model: string): boolean {
    return this.#answeredModels.has(model);
  }

  /** Stores a load message. True: the state of the host changed, which affects placement. */
  recordLoad(load: ProviderMessage & { type: 'load' }, hardware: Hardware): boolean {
    this.reportedJobs = load.active_jobs;
    if (load.decode_tps !== undefined) this.decodeTps = plausibleDecodeTps(load.decode_tps, hardware);
    if (load.prefill_tps !== undefined) this.prefillTps = plausiblePrefillTps(load.prefill_tps, hardware);
    const { thermal, memoryPressure, power } = this.host;
    this.host = { thermal: load.thermal ?? thermal, memoryPressure: load.memory_pressure ?? memoryPressure, power: load.power ?? power };
    return thermal !== this.host.thermal || memoryPressure !== this.host.memoryPressure || power !== this.host.power;
  }

  recordVerifiedAnswer(model: string): void {
    this.#answeredModels.set(model, true);
  }

  /** Stores the weights hash of a verified receipt. Undefined removes the stored hash, because the receipt has none. */
  recordSignedWeights(model: string, weightsSha256: string | undefined): void {
    if (this.#signedWeights.get(model) === weightsSha256) {
      // Changes only the order in which models are dropped.
      if (weightsSha256 !== undefined) this.#signedWeights.set(model, weightsSha256);
      return;
    }
    const weights = new BoundedMap<string, string>(MAX_SIGNED_MODELS);
    for (const [signedModel, sha256] of this.#signedWeights) weights.set(signedModel, sha256);
    if (weightsSha256 === undefined) weights.delete(model);
    else weights.set(model, weightsSha256);
    this.#signedWeights = weights;
  }

  recordBilledJob(completionTokens: number): void {
    this.#requestsServed++;
    this.#tokensGenerated += completionTokens;
  }
}
