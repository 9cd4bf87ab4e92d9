/** `switchCommand` creates a command that shows a setting of `config.toml`, or turns it on or off, such as `remote-control off`. */
import { configPath } from '../config/data-dir.js';
import { editConfig } from '../config/edit-config.js';
import { readConfig } from '../config/read-config.js';
import type { Command } from './command.js';
import { EXIT } from './exit-codes.js';
import { ownerOptions, UsageError } from './input/owner-options.js';
import { print } from './output/terminal.js';
import { reloadSettings } from './reload-settings.js';

interface SwitchedSetting {
  readonly name: string;
  /** Key in `config.toml`. */
  readonly key: 'remote_control' | 'notifications';
  /** For the usage text. The calling command handles them itself. */
  readonly otherArguments?: readonly string[];
  readonly summary: string;
  readonly help: string;
  /** Precedes `on` or `off`. */
  readonly subject: string;
}

export function switchCommand({ name, key, otherArguments = [], summary, help, subject }: SwitchedSetting): Command {
  return {
    name,
    summary,
    usage: `${name} [${['on', 'off', ...otherArguments].join('|')}] [--data-dir DIR] [--json]\n\n${help}`,
    run: async (args) => {
      const { dataDir, json, words } = ownerOptions(args, {}, { min: 0, max: 1 });
      const [word] = words;
      if (word !== undefined && word !== 'on' && word !== 'off') throw new UsageError(`Write "${name} on" or "${name} off".`);
      const path = configPath(dataDir);
      const config = word === undefined ? readConfig(path) : editConfig(path, [{ path: [key], value: word === 'on' }]);
      const problem = word === undefined ? null : (await reloadSettings(dataDir)).problem;
      const isOn = config[key];
      await print([json ? JSON.stringify({ [key]: isOn }, null, 2) : `${subject} ${isOn ? 'on' : 'off'}.`]);
      if (problem === null) return EXIT.fine;
      process.stderr.write(`The setting is stored, but the running provider did not apply it (${problem}); restart the provider.\n`);
      return EXIT.needsOwner;
    },
  };
}
