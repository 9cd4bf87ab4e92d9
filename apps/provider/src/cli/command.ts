/** Interface of a CLI command. Each command has its own file in `commands/` and a line in `command-table.ts`. */

export interface Command {
  /** What the owner types: one word, or two such as `models pull`. */
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  /** The arguments, after `inference-provider`. */
  readonly usage: string;
  /** Also runs where only the first word of its name is typed. */
  readonly isDefault?: true;
  /** Runs it with the arguments after its name. Resolves with the exit code of the process. */
  readonly run: (args: readonly string[]) => Promise<number>;
}
