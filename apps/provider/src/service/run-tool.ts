/** `runTool` runs system programs such as `launchctl` and `systemctl`. Tests replace the function to see the exact arguments. */
import { execFile } from 'node:child_process';

export interface ToolResult {
  /** 127 if the program does not exist. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export type RunTool = (program: string, args: readonly string[]) => Promise<ToolResult>;

/** Long, because `systemctl stop` waits for the service to end. */
const TOOL_MS = 90_000;

export const runTool: RunTool = (program, args) =>
  new Promise((resolve) => {
    execFile(program, [...args], { timeout: TOOL_MS, maxBuffer: 1 << 20, encoding: 'utf8' }, (error, stdout, stderr) => {
      const { code, killed } = (error ?? {}) as { code?: string | number; killed?: boolean };
      if (error === null) resolve({ code: 0, stdout, stderr });
      else if (code === 'ENOENT') resolve({ code: 127, stdout, stderr: `${program} was not found on this machine` });
      else
        resolve({
          code: typeof code === 'number' ? code : 1,
          stdout,
          stderr: killed ? `${program} did not finish in time` : stderr || error.message,
        });
    });
  });
