/** Entry point of the CLI. */
import { interpret } from './cli/command-line.js';
import { EXIT } from './cli/exit-codes.js';
import { runCommand } from './cli/run-command.js';
import { agentVersion } from './version.js';

const line = interpret(process.argv.slice(2));
switch (line.kind) {
  case 'run':
    process.exit(await runCommand(line.command, line.args));
    break;
  case 'help':
    process.stdout.write(line.text);
    process.exitCode = EXIT.fine;
    break;
  case 'version':
    process.stdout.write(`${agentVersion()}\n`);
    break;
  case 'wrong':
    process.stderr.write(line.text);
    process.exitCode = EXIT.wrongUse;
    break;
  default:
    line satisfies never;
}
