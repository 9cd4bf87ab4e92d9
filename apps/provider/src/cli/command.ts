/** Interface of a CLI command. Each command has its own file in `commands/` and a line in `command-table.ts`. */

export interface Command {
  /** Typed name: one word, or two such as `models pull`. */
  readonly name: string;
  /** Line in the overview. */
  readonly summary: string;
  /** The arguments, after `inference-provider`. */
  readonly usage: string;
  /** Resolves to the exit code of the process. */
  readonly run: (args: readonly string[]) => Promise<number>;
}
