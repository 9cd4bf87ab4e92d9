/** Entry of the command line: finds the command and runs it. */
import { SERVE_USAGE, serve } from './commands/serve.js';

const COMMANDS: Readonly<Record<string, (args: readonly string[]) => Promise<number>>> = { serve };

const [name = '', ...args] = process.argv.slice(2);
const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
if (command === undefined) {
  process.stderr.write(`Usage: inference-provider ${SERVE_USAGE}\n`);
  process.exitCode = 1;
} else {
  process.exit(await command(args));
}
