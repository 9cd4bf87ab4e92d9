/**
 * `npm run soak -- TEST` runs a soak test on the built programs, and exits 1 on a violated invariant. Tests:
 * - `crowd [agents] [seconds of traffic]`
 * - `chaos [minutes] [seed]`
 * - `agent [minutes] [seed]`
 * - `cluster [minutes] [seed]`
 * - `e2e [requests per SDK] [seed]`
 */
import { agent } from './agent.js';
import { chaos } from './chaos.js';
import { cluster } from './cluster/run.js';
import { crowd } from './crowd.js';
import { e2e } from './e2e.js';

const [name, ...rest] = process.argv.slice(2);
const numbers = rest.map(Number);
const hasPassed = await ((): Promise<boolean> => {
  switch (name) {
    case 'crowd':
      return crowd(numbers[0] ?? 2000, numbers[1] ?? 10);
    case 'chaos':
      return chaos(numbers[0] ?? 10, numbers[1] ?? 1);
    case 'agent':
      return agent(numbers[0] ?? 30, numbers[1] ?? 1);
    case 'cluster':
      return cluster(numbers[0] ?? 15, numbers[1] ?? 1);
    case 'e2e':
      return e2e(numbers[0] ?? 200, numbers[1] ?? 1);
    default:
      console.error(
        'npm run soak -- crowd [agents] [seconds of traffic] | chaos [minutes] [seed] | agent [minutes] [seed] | cluster [minutes] [seed] | e2e [requests per SDK] [seed]',
      );
      return Promise.resolve(false);
  }
})();
process.exit(hasPassed ? 0 : 1);
