/** `serve`: runs the daemon in the foreground until a signal or the command `stop`. The service managers run this command, too. */
import type { Command } from '../command.js';
import { SERVE_USAGE } from '../input/serve-options.js';

export const serveCommand: Command = {
  name: 'serve',
  summary: 'Serves models in the foreground, until Ctrl-C.',
  usage: `${SERVE_USAGE}

Settings come from config.toml in the data directory; options override them.
--check validates the settings and serves nothing. --service writes the log into the
data directory instead of standard output. On a terminal, log lines are text instead of JSON.`,
  // Loaded on demand, because the daemon's modules would take half of the start time of every other command.
  run: async (args) => (await import('../serve.js')).serve(args),
};
