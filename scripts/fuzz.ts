/**
 * Sends fuzzed HTTP requests to a local network with the demo models: `npx tsx scripts/fuzz.ts [cases] [first seed]`.
 *
 * Prints every fault with the seed that reproduces the request. Exits 1 on a fault.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fuzz, sendValidRequests } from '../test/support/fuzz/run.js';
import { startNetwork } from './network/network.js';

const cases = Number(process.argv[2] ?? 20_000);
const firstSeed = Number(process.argv[3] ?? 1_000_000);
if (!Number.isSafeInteger(cases) || !Number.isSafeInteger(firstSeed)) throw new RangeError('cases and first seed are whole numbers');

const dataDir = mkdtempSync(join(tmpdir(), 'inference-fuzz-'));
const restarts: string[] = [];
const network = await startNetwork({ port: 0, providers: 1, dataDir, onNotice: (text) => void restarts.push(text) });
try {
  const [visionModel] = network.visionModels;
  const target = {
    baseUrl: network.baseUrl,
    apiKey: network.apiKey,
    model: network.models[0] as string,
    ...(visionModel === undefined ? {} : { visionModel }),
  };
  const begin = performance.now();
  const { faults, statuses } = await fuzz({ ...target, firstSeed, cases });
  const good = await sendValidRequests(target);
  for (const fault of faults) console.log(fault);
  for (const text of restarts) console.log(text);
  console.log(`${cases} requests in ${((performance.now() - begin) / 1000).toFixed(0)} s, ${faults.length} faults; statuses:`);
  for (const [status, count] of [...statuses].sort(([a], [b]) => a - b)) console.log(`  ${status === 0 ? 'hung up' : status}: ${count}`);
  console.log(`good requests after it: ${good.join(' ')}`);
  process.exitCode = faults.length + restarts.length > 0 || good.some((status) => status !== 200) ? 1 : 0;
} finally {
  await network.stop();
  rmSync(dataDir, { recursive: true, force: true });
}
