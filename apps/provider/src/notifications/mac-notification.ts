/** Shows a notification on macOS. `osascript` works from a LaunchAgent, and needs no app bundle. */
import { type RunTool, runTool } from '../service/run-tool.js';

/** The text reaches AppleScript as an argument, never as part of the script. */
const SCRIPT = ['on run argv', 'display notification (item 2 of argv) with title (item 1 of argv)', 'end run'];
/** First argument after the script. It starts with no dash, and so ends the options of `osascript`. */
const TITLE = 'Inference Provider';

export const NEEDS_MACOS = 'Notifications are available on macOS only. This machine shows none.';

/** Null: macOS accepted the notification. Otherwise the reason. Never rejects. */
export async function showMacNotification(body: string, run: RunTool = runTool): Promise<string | null> {
  const { code, stderr } = await run('/usr/bin/osascript', [...SCRIPT.flatMap((line) => ['-e', line]), TITLE, body]);
  return code === 0 ? null : (stderr.trim().split('\n').at(-1) ?? '') || `osascript exited with code ${code}`;
}
