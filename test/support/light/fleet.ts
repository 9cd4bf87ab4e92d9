/** Many light agents in this process, brought up a few at a time. */
import { LightAgent, type LightKeys, type LightOptions, makeKeys } from './agent.js';

export interface LightFleet {
  readonly agents: readonly LightAgent[];
  /** Agents that are connected and registered on their newest connection, as far as they know. */
  online(): number;
  leave(): void;
}

export interface LightFleetOptions extends Omit<LightOptions, 'models' | 'keys'> {
  readonly size: number;
  readonly models: (index: number) => readonly string[];
  /** Made in advance; made now when there are none. */
  readonly keys?: readonly LightKeys[];
  /** Connections that are being made at once. */
  readonly atOnce?: number;
}

/** Starts a fleet and waits until every agent is registered. */
export async function startLightFleet(options: LightFleetOptions): Promise<LightFleet> {
  const { size, models, keys, atOnce = 64, ...rest } = options;
  const agents: LightAgent[] = [];
  const worker = async (): Promise<void> => {
    while (agents.length < size) {
      const index = agents.length;
      const agent = new LightAgent({ ...rest, models: models(index), keys: keys?.[index] ?? makeKeys() });
      agents.push(agent);
      await agent.registered;
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, size) }, worker));
  return {
    agents,
    online: () => agents.filter((agent) => agent.open).length,
    leave: () => agents.forEach((agent) => void agent.leave()),
  };
}
