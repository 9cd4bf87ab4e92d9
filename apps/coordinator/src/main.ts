/** Entry file of `inference-coordinator`. Without arguments, runs the command `serve`. */
import { runCommandLine } from './commands/run.js';

/** Imported at the first question, so that `serve` does not load the module. */
const askHidden = async (question: string): Promise<string> => (await import('./commands/password.js')).askHidden(question);

process.exit(
  await runCommandLine(process.argv.slice(2), {
    env: process.env,
    out: (line) => void process.stdout.write(`${line}\n`),
    err: (line) => void process.stderr.write(`${line}\n`),
    askHidden: process.stdin.isTTY ? askHidden : null,
  }),
);
