/** `remote-control`: whether the owner may control this machine from the console. */
import { switchCommand } from '../switch-setting.js';

export const remoteControlCommand = switchCommand({
  name: 'remote-control',
  key: 'remote_control',
  summary: 'Allows or forbids control from the console.',
  subject: 'Control from the console is',
  help: `When on, the account that this machine is linked to can pause, resume and schedule it, and choose among its
downloaded models, in the console. A pause set with \`pause\` can only be ended here. Default: on.`,
});
