/** `notifications`: shows or changes whether macOS notifies the owner. */
import { NEEDS_MACOS, showMacNotification } from '../../notifications/mac-notification.js';
import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { ownerOptions, UsageError } from '../input/owner-options.js';
import { print } from '../output/terminal.js';
import { switchCommand } from '../switch-setting.js';

const setting = switchCommand({
  name: 'notifications',
  key: 'notifications',
  otherArguments: ['test'],
  summary: 'Turns notifications on this Mac on or off.',
  subject: 'Notifications are',
  help: `Notifies you if this Mac is offline for more than 10 minutes, if requests fail or a model cannot be loaded, if the
trust level falls, if you must install an update, and of first earnings and milestones. At most one an hour of each
kind. \`test\` shows one now. macOS lists them under Script Editor in System Settings, Notifications. Default: on.`,
});

interface NotificationsHost {
  readonly platform: NodeJS.Platform;
  readonly show: (body: string) => Promise<string | null>;
}

/** The command on a host, which tests replace. */
export function notificationsCommandOn({ platform, show }: NotificationsHost): Command {
  return {
    ...setting,
    run: async (args) => {
      const { json, words } = ownerOptions(args, {}, { min: 0, max: 1 });
      const [word] = words;
      if (word !== undefined && !['on', 'off', 'test'].includes(word)) {
        throw new UsageError('Write "notifications on", "notifications off" or "notifications test".');
      }
      if (platform !== 'darwin') {
        await print([json ? JSON.stringify({ notifications: false, available: false }, null, 2) : NEEDS_MACOS]);
        return word === 'on' || word === 'test' ? EXIT.needsOwner : EXIT.fine;
      }
      if (word !== 'test') return setting.run(args);
      const problem = await show('Notifications work on this Mac.');
      if (problem !== null) {
        process.stderr.write(`macOS did not accept the notification: ${problem}\n`);
        return EXIT.needsOwner;
      }
      await print([
        json
          ? JSON.stringify({ sent: true }, null, 2)
          : 'Sent a test notification. If you see none, allow notifications of Script Editor in System Settings, Notifications.',
      ]);
      return EXIT.fine;
    },
  };
}

export const notificationsCommand = notificationsCommandOn({ platform: process.platform, show: showMacNotification });
