/** Entry of the command line: finds the command and runs it. */

import { findCommand, overview, unknownCommand, usageOf } from './commands/commands.js';
import { EXIT } from './commands/exit-codes.js';
import { runCommand } from './commands/run-command.js';

const typed = process.argv.slice(2);
const found = findCommand(typed);
if (found === null) {
  const asked = typed[0] === '--help' || typed[0] === '-h' || typed[0] === 'help';
  if (asked) process.stdout.write(overview());
  else process.stderr.write(typed.length === 0 ? overview() : unknownCommand(typed));
  process.exitCode = asked ? EXIT.fine : EXIT.wrongUse;
} else if (found.args.includes('--help') || found.args.includes('-h')) {
  process.stdout.write(usageOf(found.command));
} else {
  process.exit(await runCommand(found.command, found.args));
}
