/** Entry of the command line: finds the command and runs it. */
import { findCommand, overview, usageOf } from './commands/commands.js';
import { agentVersion } from './version.js';

const typed = process.argv.slice(2);
const found = findCommand(typed);
if (typed[0] === '--version') {
  process.stdout.write(`${agentVersion()}\n`);
} else if (found === null) {
  const asked = typed[0] === '--help' || typed[0] === '-h' || typed[0] === 'help';
  (asked ? process.stdout : process.stderr).write(overview());
  process.exitCode = asked ? 0 : 1;
} else if (found.args.includes('--help') || found.args.includes('-h')) {
  process.stdout.write(usageOf(found.command));
} else {
  process.exit(await found.command.run(found.args));
}
