/** The command line of `inference-verify`: usage text, choice of the command, and exit codes. */
import { chainCommand } from './chain.js';
import { type Command, UnavailableError, UsageError } from './command.js';
import { logCommand } from './log.js';
import { networkCommand } from './network.js';
import { proxyProgram } from './proxy.js';
import { receiptCommand } from './receipt.js';
import { responseCommand } from './response.js';

const COMMANDS: Readonly<Record<string, Command>> = {
  network: networkCommand,
  response: responseCommand,
  receipt: receiptCommand,
  chain: chainCommand,
  log: logCommand,
};

const USAGE = `usage: inference-verify <command> [options]

${[...Object.values(COMMANDS), proxyProgram].map(({ usage, summary }) => `  ${usage}\n      ${summary}`).join('\n')}

Every command but proxy takes --json. Exit codes: 0 verified, 1 not verified, 2 wrong usage, 3 evidence unavailable.`;

export type Output = Pick<Console, 'log' | 'error'>;

/** Runs one command. Resolves with the exit code. */
export async function runCommandLine(args: readonly string[], output: Output): Promise<number> {
  try {
    return await run(args, output);
  } catch (error) {
    if (error instanceof UsageError) output.error(`inference-verify: ${error.message}\n\n${USAGE}`);
    else if (error instanceof UnavailableError) output.error(`inference-verify: ${error.message}`);
    else output.error(error);
    return error instanceof UsageError ? 2 : 3;
  }
}

async function run(args: readonly string[], output: Output): Promise<number> {
  const [name, ...rest] = args;
  if (name === undefined || name === '--help' || name === '-h') {
    output.log(USAGE);
    return name === undefined ? 2 : 0;
  }
  if (name === 'proxy') return proxyProgram.run(rest);
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command === undefined) throw new UsageError(`there is no command ${JSON.stringify(name)}`);
  if (rest.includes('--help') || rest.includes('-h')) {
    output.log(`usage: inference-verify ${command.usage}\n\n${command.summary}`);
    return 0;
  }
  const report = await command.run(rest.filter((argument) => argument !== '--json'));
  output.log(rest.includes('--json') ? JSON.stringify(report.json, null, 2) : report.text);
  return report.verified ? 0 : 1;
}
