/** `Presence`: measures the longest time that any agent is without a connection to a running coordinator. For the soak `cluster`. */
import type { Coordinator, SoakCluster } from './soak-cluster.js';

const SAMPLE_MS = 25;

export class Presence {
  readonly #cluster: SoakCluster;
  readonly #timer: NodeJS.Timeout;
  /** Start of the current absence. Key: name of the agent. */
  readonly #absentSinceByName = new Map<string, number>();
  #frozen: Coordinator | null = null;
  #maxMs = 0;
  #sampledAt = performance.now();
  /** Longest delay of a sample, in milliseconds. High on a busy machine. */
  maxLateMs = 0;

  constructor(cluster: SoakCluster) {
    this.#cluster = cluster;
    this.#timer = setInterval(() => {
      const now = performance.now();
      this.maxLateMs = Math.max(this.maxLateMs, now - this.#sampledAt - SAMPLE_MS);
      this.#sampledAt = now;
      this.#sample();
    }, SAMPLE_MS);
  }

  /** Resets `maxMs`. Until `thaw`, agents of the frozen coordinator count as absent. */
  begin(frozen: Coordinator | null): void {
    this.#maxMs = 0;
    this.#frozen = frozen;
    this.#sample();
  }

  thaw(): void {
    this.#frozen = null;
  }

  /** Longest absence since `begin`, in milliseconds. */
  get maxMs(): number {
    this.#sample();
    return this.#maxMs;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #sample(): void {
    const now = performance.now();
    for (const [name, isPresent] of this.#states()) {
      if (isPresent) this.#absentSinceByName.delete(name);
      else {
        const since = this.#absentSinceByName.get(name) ?? now;
        this.#absentSinceByName.set(name, since);
        this.#maxMs = Math.max(this.#maxMs, now - since);
      }
    }
  }

  /** Name of each agent, and whether the agent is present. */
  *#states(): Iterable<readonly [string, boolean]> {
    const { lightAgents, network } = this.#cluster;
    const frozen = this.#frozen;
    for (const [index, agent] of lightAgents.entries()) {
      const isAtFrozen = frozen !== null && [frozen.url, frozen.agent.address].includes(agent.coordinatorUrl);
      yield [`light agent ${index + 1}`, agent.isRegistered && !isAtFrozen];
    }
    for (const [index, { coordinator }] of network.topology.agents.entries()) {
      yield [`agent ${index + 1}`, coordinator !== null && coordinator !== frozen?.url];
    }
  }
}
