/** `showMacNotification` shows a notification with `osascript`, which needs no app bundle and works from a LaunchAgent. */
import { type RunTool, runTool } from '../service/run-tool.js';

/** AppleScript with title and text as arguments, so that a text is never executed. */
const SCRIPT = ['on run argv', 'display notification (item 2 of argv) with title (item 1 of argv)', 'end run'];
/** First argument after the script. Must not begin with a dash, because `osascript` would read an option. */
const TITLE = 'Inference Provider';

export const NEEDS_MACOS = 'Notifications are available on macOS only. This machine shows none.';

/** Resolves to null if macOS accepted the notification, else to the reason. Never rejects. */
export async function showMacNotification(body: string, run: RunTool = runTool): Promise<string | null> {
  const { code, stderr } = await run('/usr/bin/osascript', [...SCRIPT.flatMap((line) => ['-e', line]), TITLE, body]);
  return code === 0 ? null : (stderr.trim().split('\n').at(-1) ?? '') || `osascript exited with code ${code}`;
}
