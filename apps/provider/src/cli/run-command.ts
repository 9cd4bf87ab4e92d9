/** `runCommand` runs a command and converts its errors to a text on stderr and an exit code. */
import { AccountFileError } from '../account/account-file.js';
import { CoordinatorError } from '../account/coordinator-http.js';
import { ConfigError } from '../config/read-config.js';
import { ControlError } from '../control/control-client.js';
import { startupErrorText } from '../startup-error.js';
import type { Command } from './command.js';
import { EXIT } from './exit-codes.js';
import { UsageError } from './input/owner-options.js';
import { PromptAborted } from './input/prompt.js';

export async function runCommand(command: Command, args: readonly string[]): Promise<number> {
  try {
    return await command.run(args);
  } catch (error) {
    if (error instanceof UsageError) {
      process.stderr.write(`${error.message}\n\`inference-provider ${command.name} --help\` lists the options.\n`);
      return EXIT.wrongUse;
    }
    if (error instanceof PromptAborted) {
      process.stderr.write('\nCanceled. Nothing was changed.\n');
      return EXIT.needsOwner;
    }
    if (error instanceof CoordinatorError) {
      process.stderr.write(`${sentence(error.message)}\n`);
      return error.kind === 'unreachable' ? EXIT.unreachable : EXIT.needsOwner;
    }
    if (error instanceof ControlError && NEXT_COMMANDS[error.problem] !== undefined)
      process.stderr.write(`${sentence(error.message)} ${NEXT_COMMANDS[error.problem]}\n`);
    else if (error instanceof ControlError || error instanceof ConfigError || error instanceof AccountFileError)
      process.stderr.write(`${sentence(error.message)}\n`);
    else process.stderr.write(`${startupErrorText(error)}\n`);
    return error instanceof ControlError && error.problem === 'not_running' ? EXIT.notRunning : EXIT.needsOwner;
  }
}

/** Advice if no provider answers. Refusals of a running provider have their own messages. */
const NEXT_COMMANDS: Partial<Record<ControlError['problem'], string>> = {
  not_running: 'To start it, run "inference-provider start"; on a new machine, "inference-provider setup".',
  no_answer: 'Find the cause: inference-provider doctor',
};

function sentence(text: string): string {
  const whole = /[.!?]$/.test(text) ? text : `${text}.`;
  // Capitalizes a word, but not a path.
  return /^[a-z]+ /.test(whole) ? whole.charAt(0).toUpperCase() + whole.slice(1) : whole;
}
