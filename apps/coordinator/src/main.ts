/** Entry file of `inference-coordinator`. Without arguments, runs the command `serve`. */
import { runCommandLine } from './commands/run.js';

/** Asks for a secret without echo. Imports its module at the first question, so that `serve` does not load it. */
const askHidden = async (question: string): Promise<string> => (await import('./commands/password.js')).askHidden(question);

process.exit(
  await runCommandLine(process.argv.slice(2), {
    env: process.env,
    out: (line) => void process.stdout.write(`${line}\n`),
    err: (line) => void process.stderr.write(`${line}\n`),
    // Null without a terminal: nobody could answer.
    askHidden: process.stdin.isTTY ? askHidden : null,
  }),
);
