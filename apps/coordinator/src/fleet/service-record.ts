/** What a provider did on one connection, as the coordinator saw it, and what it told of its own load. */
import type { ProviderMessage } from '@inference/protocol';
import { type HostState, UNTROUBLED_HOST } from './scheduler/gates.js';

export class ServiceRecord {
  /** Jobs as the provider reports them. */
  reportedJobs = 0;
  /** The decode rate that it reported last, in tokens per second. */
  decodeTps: number | null = null;
  /** How the machine is, as far as it tells. */
  host: HostState = UNTROUBLED_HOST;
  #requestsServed = 0;
  #tokensGenerated = 0;
  /** Jobs that it was chosen for. */
  placements = 0;
  /** The model of its newest job. */
  latestModel: string | null = null;

  get requestsServed(): number {
    return this.#requestsServed;
  }

  get tokensGenerated(): number {
    return this.#tokensGenerated;
  }

  /** Takes in what the provider tells of its load. Whether placement should look again. */
  reported(load: ProviderMessage & { type: 'load' }): boolean {
    this.reportedJobs = load.active_jobs;
    this.decodeTps = load.decode_tps ?? this.decodeTps;
    const { thermal, memoryPressure, power } = this.host;
    this.host = {
      thermal: load.thermal ?? thermal,
      memoryPressure: load.memory_pressure ?? memoryPressure,
      power: load.power ?? power,
    };
    return thermal !== this.host.thermal || memoryPressure !== this.host.memoryPressure || power !== this.host.power;
  }

  /** A job counts: this many completion tokens were billed. */
  served(tokens: number): void {
    this.#requestsServed++;
    this.#tokensGenerated += tokens;
  }
}
