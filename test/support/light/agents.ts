/** `startLightAgents`: starts many light agents in this process, a few at a time. */
import { LightAgent, type LightKeys, type LightOptions, makeKeys } from './agent.js';

export interface LightAgents {
  readonly agents: readonly LightAgent[];
  /** Number of agents with an open connection. */
  online(): number;
  leave(): void;
}

export interface LightAgentsOptions extends Omit<LightOptions, 'models' | 'keys' | 'url'> {
  /** Address of the coordinator; a function gets the agent's index before each connection. */
  readonly url: string | ((index: number) => string);
  readonly size: number;
  readonly models: (index: number) => readonly string[];
  /** Prepared keys; generated when absent. */
  readonly keys?: readonly LightKeys[];
  readonly atOnce?: number;
}

/** Starts agents and waits until every agent is registered. */
export async function startLightAgents(options: LightAgentsOptions): Promise<LightAgents> {
  const { url, size, models, keys, atOnce = 64, ...rest } = options;
  const agents: LightAgent[] = [];
  const worker = async (): Promise<void> => {
    while (agents.length < size) {
      const index = agents.length;
      const agent = new LightAgent({
        ...rest,
        url: typeof url === 'string' ? url : () => url(index),
        models: models(index),
        keys: keys?.[index] ?? makeKeys(),
      });
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
