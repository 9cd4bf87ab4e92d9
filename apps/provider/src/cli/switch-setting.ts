/** Commands that show a setting of `config.toml`, or turn the setting on or off, such as `remote-control off`. */
import { configPath } from '../config/data-dir.js';
import { editConfig } from '../config/edit-config.js';
import { readConfig } from '../config/read-config.js';
import { ControlError, requestDaemon } from '../control/control-client.js';
import type { Command } from './command.js';
import { EXIT } from './exit-codes.js';
import { ownerOptions, UsageError } from './input/owner-options.js';
import { print } from './output/terminal.js';

interface SwitchedSetting {
  readonly name: string;
  /** Key in `config.toml`. */
  readonly key: 'remote_control' | 'notifications';
  /** Further arguments in the usage text, handled by the calling command. */
  readonly otherArguments?: readonly string[];
  readonly summary: string;
  readonly help: string;
  /** Subject and verb before `on` or `off`. */
  readonly subject: string;
}

const ANSWER_MS = 6_000;

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
      const problem = word === undefined ? null : await reloadSettings(dataDir);
      const isOn = config[key];
      await print([json ? JSON.stringify({ [key]: isOn }, null, 2) : `${subject} ${isOn ? 'on' : 'off'}.`]);
      if (problem !== null) process.stderr.write(`${problem}\n`);
      return problem === null ? EXIT.fine : EXIT.needsOwner;
    },
  };
}

/** Makes a running provider read its settings again. Returns a sentence for the owner if that fails, otherwise null. */
async function reloadSettings(dataDir: string): Promise<string | null> {
  const isAnything = (value: unknown): value is unknown => value !== undefined;
  try {
    await requestDaemon(dataDir, { path: '/v1/reload', body: {} }, isAnything, ANSWER_MS);
    return null;
  } catch (error) {
    if (!(error instanceof ControlError)) throw error;
    if (error.problem === 'not_running') return null;
    return `The setting is stored, but the running provider did not apply it (${error.message}); restart the provider.`;
  }
}
