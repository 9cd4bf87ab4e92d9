/** `npm start`: runs a whole network on this machine until Ctrl-C. Settings: PORT, DATA_DIR, PROVIDERS, MODEL_PATH. */
import { demoOf, writeDemoFile } from './network/demo-file.js';
import { DEMO_MODEL_ARGS, exitWith, launch } from './network/launch.js';
import { startNetwork } from './network/network.js';
import { readSettings } from './network/settings.js';
import { usageText } from './network/usage-text.js';

const USAGE = `Usage: npm start

Starts a whole network on this machine until Ctrl-C. Settings are environment variables:
  PORT        port on 127.0.0.1 (default 8080)
  DATA_DIR    data, keys and logs (default .data)
  PROVIDERS   number of agents (default 1)
  MODEL_PATH  a GGUF file to serve (default: the demo models)`;

async function main(): Promise<number> {
  const [argument] = process.argv.slice(2);
  if (argument !== undefined) {
    const isHelp = argument === '--help' || argument === '-h';
    console[isHelp ? 'log' : 'error'](isHelp ? USAGE : `npm start takes no arguments: "${argument}".\n\n${USAGE}`);
    return isHelp ? 0 : 2;
  }
  const { modelPath, ...rest } = readSettings(process.env, 1);
  return launch({
    dataDir: rest.dataDir,
    start: (control) =>
      startNetwork({
        ...rest,
        ...control,
        ...(modelPath === null ? { providerArgs: DEMO_MODEL_ARGS } : { modelPath }),
        hasSimulatedManagement: true,
      }),
    onReady: (network) => {
      writeDemoFile(rest.dataDir, demoOf(network));
      console.log(
        usageText(network, rest.dataDir, `The network is up: ${rest.providers} provider(s) serving ${network.models.join(', ')}.`),
      );
    },
  });
}

exitWith(main());
