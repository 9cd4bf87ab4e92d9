/** Entry file of the simulated enclave helper, which signs with a software key and says so. Exits when stdin ends. */
import { parseArgs } from 'node:util';
import { LineSplitter } from '../contract/line-splitter.js';
import { answer } from './answer.js';
import { parseMachine } from './machine.js';
import { simulatedOperations } from './operations.js';
import { Refusal } from './refusal.js';

function main(): void {
  const { values } = parseArgs({ options: { 'data-dir': { type: 'string' }, profile: { type: 'string' } } });
  const dataDir = values['data-dir'];
  if (dataDir === undefined) throw new Refusal('bad_request', '--data-dir is missing');
  const profile = values.profile === undefined ? {} : parseMachine(values.profile, '--profile');
  const operations = simulatedOperations(dataDir, profile, Date.now);

  // Ctrl-C signals the whole foreground group, but the agent still needs signatures while draining, and ends this process.
  process.on('SIGINT', () => {});
  process.on('SIGHUP', () => {});
  process.stdout.on('error', () => process.exit(0));

  const lines = new LineSplitter();
  process.stdin.on('data', (bytes: Buffer) => {
    for (const line of lines.push(bytes)) process.stdout.write(`${answer(line, operations)}\n`);
  });
  process.stdin.on('error', () => process.exit(0));
  // Pending replies are flushed before the process ends.
  process.stdin.on('end', () => process.stdout.end());
}

try {
  main();
} catch (error) {
  process.stderr.write(`The simulated enclave helper cannot start: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
