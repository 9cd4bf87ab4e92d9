/** Creates machines for console tests: light agents in this process, linked to accounts as real agents are. */
import { randomUUID } from 'node:crypto';
import type { ProviderId } from '@inference/protocol';
import { onTestFinished } from 'vitest';
import type { DemoNetwork } from '../demo-network.js';
import { LightAgent, type LightOptions } from '../light/agent.js';
import { promptOf } from '../light/script.js';
import { newPerson, type Person } from './people.js';

export interface LinkedMachine {
  readonly agent: LightAgent;
  readonly providerId: ProviderId;
  /** Model that only this machine serves. */
  readonly model: string;
}

const GRANT = 'urn:ietf:params:oauth:grant-type:device_code';

export interface DeviceCode {
  readonly device_code: string;
  readonly user_code: string;
}

/** Requests a device code, as `inference-provider login` does. */
export async function askForCode(network: DemoNetwork, machineName: string): Promise<DeviceCode> {
  return (await form(network, '/oauth/device_authorization', { machine_name: machineName, chip_name: 'Apple M4' })) as DeviceCode;
}

/** Token of an approved code. */
export async function tokenOf(network: DemoNetwork, code: DeviceCode): Promise<string> {
  const answer = (await form(network, '/oauth/token', { grant_type: GRANT, device_code: code.device_code })) as { access_token: string };
  return answer.access_token;
}

/** A machine with a unique model, linked to a person. Disconnects when the test ends. */
export async function linkedMachine(
  network: DemoNetwork,
  owner: Person,
  machineName: string,
  options: Partial<LightOptions> = {},
): Promise<LinkedMachine> {
  const machine = await newMachine(network, options);
  const code = await askForCode(network, machineName);
  await owner.call('POST', `/console/v1/device-codes/${code.user_code}/approve`, {});
  await sendLinkToken(machine, await tokenOf(network, code));
  return machine;
}

/** An unlinked machine. */
export async function newMachine(network: DemoNetwork, options: Partial<LightOptions> = {}): Promise<LinkedMachine> {
  const model = `light/${randomUUID()}`;
  const agent = await LightAgent.join({ url: network.baseUrl, models: [model], ...options });
  onTestFinished(() => agent.leave());
  return { agent, providerId: agent.providerId, model };
}

/** Sends the token over the machine's own connection. Resolves when the coordinator has linked the machine. */
export async function sendLinkToken({ agent }: LinkedMachine, token: string): Promise<void> {
  const linked = new Promise<void>((resolve, reject) => {
    agent.socket.on('message', (data: Buffer, isBinary) => {
      const message = isBinary ? null : (JSON.parse(data.toString('utf8')) as { type: string });
      if (message?.type === 'linked') resolve();
      if (message?.type === 'link_refused') reject(new Error(`not linked: ${data.toString('utf8')}`));
    });
  });
  agent.send({ type: 'link', token });
  await Promise.race([linked, agent.gone.then(() => Promise.reject(new Error('the machine has left')))]);
}

/** Output tokens that are paid regardless of the generation speed (`settlement-bounds`). */
const PAID_WORDS = 60;

/** Jobs of sixty tokens each, paid by a customer. */
export async function serveJobs(network: DemoNetwork, model: string, count: number): Promise<void> {
  const customer = await newPerson(network, { name: 'Charles Babbage', deposit: 500_000_000 });
  const { secret } = await customer.call<{ secret: string }>('POST', '/console/v1/keys', { name: 'test' });
  const body = { model, max_tokens: PAID_WORDS + 10, messages: [{ role: 'user', content: promptOf({ words: PAID_WORDS }) }] };
  for (let job = 0; job < count; job++) {
    const response = await network.post('/v1/chat/completions', body, { headers: { authorization: `Bearer ${secret}` } });
    if (!response.ok) throw new Error(`the job: ${response.status} ${await response.text()}`);
    await response.arrayBuffer();
  }
}

/** Sets a price at which a few jobs reach the withdrawal minimum: half a dollar each for the machine. */
export async function setHighPrice(operator: Person, model: string): Promise<void> {
  const rates = { prompt_per_million: 0, completion_per_million: 10_000_000_000, per_image: 0 };
  await operator.call('PUT', `/admin/v1/prices/${encodeURIComponent(model)}`, rates);
}

async function form(network: DemoNetwork, path: string, fields: Record<string, string>): Promise<unknown> {
  const body = new URLSearchParams({ client_id: 'inference-provider', ...fields });
  const answer = await fetch(`${network.baseUrl}${path}`, { method: 'POST', body });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}
