/** `npm start` starts a whole network on this machine until Ctrl-C. Settings: PORT, DATA_DIR, PROVIDERS, MODEL_PATH. */
import { demoOf, writeDemoFile } from './network/demo-file.js';
import { DEMO_MODEL_ARGS, exitWith, launch } from './network/launch.js';
import { startNetwork } from './network/network.js';
import { readSettings } from './network/settings.js';
import { usageText } from './network/usage-text.js';

async function main(): Promise<number> {
  const { modelPath, ...rest } = readSettings(process.env, 1);
  return launch({
    dataDir: rest.dataDir,
    start: (control) =>
      startNetwork({ ...rest, ...control, ...(modelPath === null ? { providerArgs: DEMO_MODEL_ARGS } : { modelPath }), managed: true }),
    onUp: (network) => {
      writeDemoFile(rest.dataDir, demoOf(network));
      console.log(
        usageText(network, rest.dataDir, `The network is up: ${rest.providers} provider(s) serving ${network.models.join(', ')}.`),
      );
    },
  });
}

exitWith(main());
