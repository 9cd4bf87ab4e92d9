/** Entry file of the coordinator and its commands. Without arguments, it serves. */
import { runCommandLine } from './commands/run.js';

process.exit(
  await runCommandLine(process.argv.slice(2), {
    env: process.env,
    out: (line) => void process.stdout.write(`${line}\n`),
    err: (line) => void process.stderr.write(`${line}\n`),
  }),
);
