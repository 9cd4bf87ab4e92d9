/**
 * `showMenuBar` and `hideMenuBar`: install and remove the menu bar item on macOS.
 *
 * The item consists of a program in the data directory, which updates of the agent leave unchanged, and a launchd agent that starts it.
 */
import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { homedir, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { controlPath } from '../control/address.js';
import { outputFile } from '../log/log-files.js';
import { installation } from '../update/installation.js';
import { labelOf } from './choose-manager.js';
import { Launchd } from './launchd.js';
import { type RunTool, runTool } from './run-tool.js';
import type { ServiceDefinition } from './service.js';

/** The message is one sentence for the owner. */
export class MenuBarError extends Error {
  override name = 'MenuBarError';
}

export interface MenuBarHost {
  readonly platform: NodeJS.Platform;
  readonly uid: number;
  /** Folder of launchd agents: `~/Library/LaunchAgents`. */
  readonly folder: string;
  /** Folder of the item's Swift sources, and of the built program if the package contains one. */
  readonly source: string;
  readonly run: RunTool;
}

export function menuBarHost(): MenuBarHost {
  return {
    platform: process.platform,
    uid: userInfo().uid,
    folder: join(homedir(), 'Library', 'LaunchAgents'),
    source: join(installation().root, 'menu-bar'),
    run: runTool,
  };
}

/** Starts the item now and at each login. Throws {@link MenuBarError}, ServiceError. */
export async function showMenuBar(dataDir: string, host: MenuBarHost): Promise<void> {
  requireMac(host);
  const program = programOf(dataDir);
  await install(program, host);
  const definition = definitionOf(dataDir, program);
  const manager = launchd(host);
  // Ends a running item, which is still the previous program.
  await manager.remove(definition.label);
  await manager.start(definition);
}

/** Ends the item and removes the program. Throws {@link MenuBarError}, ServiceError. */
export async function hideMenuBar(dataDir: string, host: MenuBarHost): Promise<void> {
  requireMac(host);
  await launchd(host).remove(menuBarLabel(dataDir));
  rmSync(dirname(programOf(dataDir)), { recursive: true, force: true });
}

function requireMac({ platform }: MenuBarHost): void {
  if (platform !== 'darwin') throw new MenuBarError('the menu bar item needs macOS');
}

function launchd({ run, uid, folder }: MenuBarHost): Launchd {
  return new Launchd({ run, uid, folder, plist: menuBarPlist });
}

function menuBarLabel(dataDir: string): string {
  return `${labelOf(dataDir)}-menu-bar`;
}

function programOf(dataDir: string): string {
  return join(dataDir, 'menu-bar', 'inference-menu-bar');
}

/** Copies the built program, or builds the program from its sources. */
async function install(program: string, { source, run }: MenuBarHost): Promise<void> {
  mkdirSync(dirname(program), { recursive: true, mode: 0o700 });
  const prebuilt = join(source, 'bin', 'inference-menu-bar');
  if (existsSync(prebuilt)) {
    // Replaces the file by a rename: changing the file of a running program would invalidate its code signature.
    copyFileSync(prebuilt, `${program}.new`);
    renameSync(`${program}.new`, program);
    return;
  }
  const { code, stdout, stderr } = await run('/bin/sh', [join(source, 'build.sh'), program]);
  if (code !== 0) throw new MenuBarError(`the menu bar item was not built: ${(stderr || stdout).trim().split('\n').at(-1) ?? ''}`);
}

function definitionOf(dataDir: string, program: string): ServiceDefinition {
  return {
    label: menuBarLabel(dataDir),
    dataDir,
    command: [program, '--socket', controlPath(dataDir)],
    environment: {},
    outputFile: join(dirname(outputFile(dataDir)), 'menu-bar.log'),
    stopSeconds: 5,
  };
}

async function menuBarPlist({ label, command, outputFile: output, stopSeconds }: ServiceDefinition): Promise<string> {
  const { build } = await import('./property-list.js');
  return build({
    Label: label,
    ProgramArguments: [...command],
    RunAtLoad: true,
    // After a crash, launchd starts the item again. "Quit" in its menu exits with code 0 and lasts until the next login.
    KeepAlive: { SuccessfulExit: false },
    ExitTimeOut: stopSeconds,
    ProcessType: 'Interactive',
    // A menu bar exists in graphical sessions only.
    LimitLoadToSessionType: 'Aqua',
    StandardOutPath: output,
    StandardErrorPath: output,
  });
}
