/** Entry file of the guard: `main.js PREFIX ARGUMENTS…`. The launcher runs the guard instead of the agent during a trial. */
import { Guard } from './guard.js';

const [prefix, ...args] = process.argv.slice(2);
if (prefix === undefined) {
  process.stderr.write('the guard needs the folder of the installation\n');
  process.exit(2);
}
const guard = new Guard({ prefix, args, say: (sentence) => process.stderr.write(`inference-provider: ${sentence}\n`) });
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => guard.stop(signal));
// In a terminal, SIGHUP means that the terminal closed.
process.on('SIGHUP', () => (process.stdout.isTTY ? guard.stop('SIGHUP') : guard.reloadSettings()));
process.exit(await guard.run());
