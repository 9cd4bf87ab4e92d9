/** Entry file of the coordinator and its commands. Without arguments, it serves. */
import { runCommandLine } from './commands/run.js';

/** Loaded at a question, so that serving does not load the code. */
const askHidden = async (question: string): Promise<string> => (await import('./commands/password.js')).askHidden(question);

process.exit(
  await runCommandLine(process.argv.slice(2), {
    env: process.env,
    out: (line) => void process.stdout.write(`${line}\n`),
    err: (line) => void process.stderr.write(`${line}\n`),
    askHidden: process.stdin.isTTY ? askHidden : null,
  }),
);
