/**
 * `npm run soak -- crowd [agents] [seconds of traffic]`, `npm run soak -- chaos [minutes] [seed]`, `npm run soak -- agent
 * [minutes] [seed]`, `npm run soak -- cluster [minutes] [seed]` and `npm run soak -- e2e [requests per SDK] [seed]`: long checks outside
 * the tests. Expects a build; exits 1 on a violated invariant.
 */
import { agent } from './agent.js';
import { chaos } from './chaos.js';
import { cluster } from './cluster/run.js';
import { crowd } from './crowd.js';
import { e2e } from './e2e.js';

const [name, ...rest] = process.argv.slice(2);
const numbers = rest.map(Number);
const held = await ((): Promise<boolean> => {
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
process.exit(held ? 0 : 1);
