/** launchd and systemd: parsers of recorded output, exact commands, and written definitions. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'plist';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { serviceManager } from '../../src/service/choose-manager.js';
import { serviceEnvironment } from '../../src/service/environment.js';
import { Launchd, launchdPlist, parseLaunchctlPrint } from '../../src/service/launchd.js';
import type { RunTool, ToolResult } from '../../src/service/run-tool.js';
import type { ServiceDefinition } from '../../src/service/service.js';
import { parseSystemctlShow, Systemd, systemdUnit } from '../../src/service/systemd.js';
import { systemdUnitOf } from '../../src/service/systemd-unit-of.js';

const DEFINITION: ServiceDefinition = {
  label: 'inference-provider',
  dataDir: '/Users/a b/.inference-provider',
  command: ['/usr/bin/node', '/opt/50% $HOME "x"/main.js', 'serve', '--service'],
  environment: { PATH: '/usr/bin:/bin', LANG: 'de_DE.UTF-8', NO_PROXY: '<&>"\'' },
  outputFile: '/Users/a b/.inference-provider/logs/output.log',
  stopSeconds: 25,
};

// Recorded on macOS 15; names are changed.
const PRINT_RUNNING = `gui/501/inference-provider = {
	active count = 1
	path = /Users/a/Library/LaunchAgents/inference-provider.plist
	type = LaunchAgent
	state = running

	program = /usr/local/bin/node
	arguments = {
		/usr/local/bin/node
		state = odd
	}

	default environment = {
		PATH => /usr/bin:/bin:/usr/sbin:/sbin
	}

	domain = gui/501 [100005]
	minimum runtime = 10
	exit timeout = 25
	runs = 1
	pid = 4242
	immediate reason = speculative
	forks = 0
	execs = 1
	initialized = 1
	last exit code = (never exited)
}
`;
const PRINT_WAITING = PRINT_RUNNING.replace('state = running', 'state = spawn scheduled')
  .replace('\tpid = 4242\n', '')
  .replace('(never exited)', '1');
const PRINT_ENDED = PRINT_RUNNING.replace('state = running', 'state = not running')
  .replace('\tpid = 4242\n', '')
  .replace('(never exited)', '0');
const NOT_FOUND = 'Bad request.\nCould not find service "inference-provider" in domain for user gui: 501\n';

const show = (load: string, active: string, sub: string, pid: number, result = 'success', status = 0): string =>
  `LoadState=${load}\nActiveState=${active}\nSubState=${sub}\nMainPID=${pid}\nResult=${result}\nExecMainStatus=${status}\n`;

let dir: string;
beforeEach(() => {
  dir = temporaryDirectory('service');
});
afterEach(() => vi.unstubAllEnvs());

/** Replies by the first words of a command line. A list is replayed in order; its last reply repeats. */
function tool(answers: Readonly<Record<string, readonly (Partial<ToolResult> | string)[]>>): { run: RunTool; said: string[] } {
  const said: string[] = [];
  const counts = new Map<string, number>();
  const run: RunTool = async (program, args) => {
    const line = [program, ...args].join(' ');
    said.push(line);
    const key = Object.keys(answers).find((each) => line.startsWith(each));
    const list = key === undefined ? [] : (answers[key] ?? []);
    const count = counts.get(key ?? '') ?? 0;
    counts.set(key ?? '', count + 1);
    const answer = list[Math.min(count, list.length - 1)] ?? {};
    return { code: 0, stdout: '', stderr: '', ...(typeof answer === 'string' ? { stdout: answer } : answer) };
  };
  return { run, said };
}

describe('the property list', () => {
  it('defines the service, with any characters', async () => {
    const text = await launchdPlist(DEFINITION);
    expect(parse(text)).toEqual({
      Label: 'inference-provider',
      ProgramArguments: DEFINITION.command,
      EnvironmentVariables: DEFINITION.environment,
      WorkingDirectory: DEFINITION.dataDir,
      RunAtLoad: true,
      KeepAlive: { SuccessfulExit: false },
      ThrottleInterval: 10,
      ExitTimeOut: 25,
      ProcessType: 'Standard',
      Umask: 63,
      SoftResourceLimits: { Core: 0 },
      HardResourceLimits: { Core: 0 },
      StandardOutPath: DEFINITION.outputFile,
      StandardErrorPath: DEFINITION.outputFile,
    });
    expect(text).toMatch(/<key>Umask<\/key>\s*<integer>63<\/integer>/);
  });
});

describe('launchd', () => {
  const launchd = (run: RunTool): Launchd => new Launchd({ run, uid: 501, folder: dir, pollMs: 1 });
  const print = 'launchctl print gui/501/inference-provider';

  it('loads an unknown or changed service, but leaves a running one alone', async () => {
    const first = tool({ [print]: [{ code: 113, stderr: NOT_FOUND }] });
    expect(await launchd(first.run).start(DEFINITION)).toBe('started');
    const plist = join(dir, 'inference-provider.plist');
    expect(first.said).toEqual([print, 'launchctl enable gui/501/inference-provider', `launchctl bootstrap gui/501 ${plist}`]);
    expect(statSync(plist).mode & 0o777).toBe(0o600);
    const second = tool({ [print]: [PRINT_RUNNING] });
    expect(await launchd(second.run).start(DEFINITION)).toBe('already_running');
    expect(second.said).toEqual([print]);
    const moved = { ...DEFINITION, command: ['/usr/bin/node', '/elsewhere/main.js', 'serve'] };
    const third = tool({ [print]: [PRINT_RUNNING, PRINT_RUNNING, { code: 113 }], 'launchctl bootout': [{ code: 36 }] });
    expect(await launchd(third.run).start(moved)).toBe('started');
    expect(third.said).toEqual([
      print,
      'launchctl bootout gui/501/inference-provider',
      print,
      print,
      'launchctl enable gui/501/inference-provider',
      `launchctl bootstrap gui/501 ${plist}`,
    ]);
    expect(readFileSync(plist, 'utf8')).toBe(await launchdPlist(moved));
  });

  it('starts a service at once that waits after a crash', async () => {
    writeFileSync(join(dir, 'inference-provider.plist'), await launchdPlist(DEFINITION));
    const { run, said } = tool({ [print]: [PRINT_WAITING] });
    expect(await launchd(run).start(DEFINITION)).toBe('started');
    expect(said).toEqual([print, 'launchctl kickstart gui/501/inference-provider']);
  });

  it('stops permanently, even a service that does not run', async () => {
    const running = tool({ [print]: [PRINT_RUNNING, { code: 113 }] });
    expect(await launchd(running.run).stop('inference-provider')).toBe('stopped');
    expect(running.said).toEqual([
      print,
      'launchctl disable gui/501/inference-provider',
      'launchctl bootout gui/501/inference-provider',
      print,
    ]);
    const gone = tool({ [print]: [{ code: 113 }] });
    expect(await launchd(gone.run).stop('inference-provider')).toBe('was_not_running');
    expect(gone.said).toEqual([print, 'launchctl disable gui/501/inference-provider']);
  });

  it('restarts only after the running jobs', async () => {
    writeFileSync(join(dir, 'inference-provider.plist'), await launchdPlist(DEFINITION));
    const { run, said } = tool({ [print]: [PRINT_RUNNING, PRINT_RUNNING, PRINT_ENDED] });
    await launchd(run).restart(DEFINITION);
    expect(said).toEqual([
      print,
      'launchctl kill SIGTERM gui/501/inference-provider',
      print,
      print,
      'launchctl kickstart -k gui/501/inference-provider',
    ]);
  });

  it('reports a refused command', async () => {
    const { run } = tool({
      [print]: [{ code: 113 }],
      'launchctl bootstrap': [{ code: 5, stderr: 'Bootstrap failed: 5: Input/output error\nmore' }],
    });
    await expect(launchd(run).start(DEFINITION)).rejects.toThrow(
      'launchctl bootstrap was refused (5): Bootstrap failed: 5: Input/output error',
    );
  });

  it('is removed with its file', async () => {
    writeFileSync(join(dir, 'inference-provider.plist'), 'x');
    await launchd(tool({ [print]: [PRINT_RUNNING, { code: 113 }] }).run).remove('inference-provider');
    expect(existsSync(join(dir, 'inference-provider.plist'))).toBe(false);
  });

  it('is read with care', () => {
    expect(parseLaunchctlPrint(PRINT_RUNNING)).toEqual({ kind: 'running', pid: 4242 });
    expect(parseLaunchctlPrint(PRINT_WAITING)).toEqual({ kind: 'waiting', lastExit: '1' });
    expect(parseLaunchctlPrint(PRINT_ENDED)).toEqual({ kind: 'not_running' });
    expect(parseLaunchctlPrint('')).toEqual({ kind: 'not_running' });
  });
});

describe('systemd', () => {
  const systemd = (run: RunTool): Systemd => new Systemd({ run, user: 'ada', folder: dir });
  const state = 'systemctl --user show --property=ActiveState,SubState,MainPID,Result,ExecMainStatus inference-provider.service';

  it('gets a valid unit', () => {
    const path = join(dir, 'inference-provider.service');
    const definition = {
      ...DEFINITION,
      dataDir: dir,
      command: [process.execPath, ...DEFINITION.command.slice(1)],
      outputFile: join(dir, 'output.log'),
    };
    writeFileSync(path, systemdUnit(definition));
    let verified = '';
    try {
      verified = execFileSync('systemd-analyze', ['verify', '--user', path], {
        encoding: 'utf8',
        stdio: 'pipe',
        env: { ...process.env, XDG_RUNTIME_DIR: dir },
      });
    } catch (error) {
      const { code, stderr } = error as { code?: string; stderr?: string };
      if (code === 'ENOENT') console.warn('SKIPPED: there is no systemd-analyze on this machine, so that the unit was not verified');
      else expect(stderr ?? 'unknown').toBe('');
    }
    expect(verified).toBe('');
    const text = readFileSync(path, 'utf8');
    expect(text).toContain(`ExecStart="${process.execPath}" "/opt/50%% $$HOME \\"x\\"/main.js" "serve" "--service"\n`);
    expect(text).toContain(`Environment="NO_PROXY=<&>\\"'"\n`);
    for (const line of ['Restart=on-failure', 'TimeoutStopSec=25', 'LimitCORE=0', 'NoNewPrivileges=yes', 'KillMode=mixed'])
      expect(text).toContain(`\n${line}\n`);
  });

  it('starts a stopped or changed service, leaves a running one alone, and stops permanently', async () => {
    const first = tool({ [state]: [show('not-found', 'inactive', 'dead', 0)] });
    expect(await systemd(first.run).start(DEFINITION)).toBe('started');
    expect(first.said).toEqual([
      'systemctl --user daemon-reload',
      state,
      'systemctl --user enable inference-provider.service',
      'systemctl --user restart inference-provider.service',
    ]);
    const second = tool({ [state]: [show('loaded', 'active', 'running', 77)] });
    expect(await systemd(second.run).start(DEFINITION)).toBe('already_running');
    expect(second.said.some((line) => line.includes('restart'))).toBe(false);
    expect(await systemd(second.run).start({ ...DEFINITION, command: ['/elsewhere'] })).toBe('started');
    const third = tool({
      [state]: [show('loaded', 'active', 'running', 77)],
      'systemctl --user show --property=LoadState inference': ['LoadState=loaded\n'],
    });
    expect(await systemd(third.run).stop('inference-provider')).toBe('stopped');
    expect(third.said.at(-1)).toBe('systemctl --user disable --now inference-provider.service');
    const none = tool({
      [state]: [show('not-found', 'inactive', 'dead', 0)],
      'systemctl --user show --property=LoadState inference': ['LoadState=not-found\n'],
    });
    expect(await systemd(none.run).stop('inference-provider')).toBe('was_not_running');
  });

  it('is read with care, and asks for lingering', async () => {
    expect(parseSystemctlShow(show('loaded', 'active', 'running', 77))).toEqual({ kind: 'running', pid: 77 });
    expect(parseSystemctlShow(show('loaded', 'activating', 'auto-restart', 0, 'exit-code', 1))).toEqual({
      kind: 'waiting',
      lastExit: 'exit-code (1)',
    });
    expect(parseSystemctlShow(show('loaded', 'failed', 'failed', 0, 'signal', 9))).toEqual({ kind: 'waiting', lastExit: 'signal (9)' });
    expect(parseSystemctlShow(show('loaded', 'inactive', 'dead', 0))).toEqual({ kind: 'not_running' });
    expect(parseSystemctlShow('')).toEqual({ kind: 'not_running' });
    expect(await systemd(tool({ loginctl: ['Linger=no\n'] }).run).advice()).toEqual([
      'Runs only while you are logged in. To start at boot: loginctl enable-linger ada',
    ]);
    expect(await systemd(tool({ loginctl: ['Linger=yes\n'] }).run).advice()).toEqual(['Starts automatically at boot.']);
    await expect(
      systemd(tool({ [state]: [{ code: 1, stderr: 'Failed to connect to bus' }] }).run).state('inference-provider'),
    ).rejects.toThrow('systemctl --user show was refused (1): Failed to connect to bus');
  });
});

it('recognises a process that systemd started, by its environment and control group', () => {
  const process = (pid: number, environment: Readonly<Record<string, string | number>>, groups: string): string | null => {
    mkdirSync(join(dir, String(pid)), { recursive: true });
    const entries = Object.entries(environment).map(([name, value]) => `${name}=${value}\0`);
    writeFileSync(join(dir, String(pid), 'environ'), entries.join(''));
    writeFileSync(join(dir, String(pid), 'cgroup'), groups);
    return systemdUnitOf(pid, dir);
  };
  // As systemd 252 starts a unit.
  const environment = { LANG: 'C.UTF-8', INVOCATION_ID: '0d1d2a4d8d0f4f2c9a4f7f3f9a4c2b11', JOURNAL_STREAM: '8:31337' };
  const user = '0::/user.slice/user-1000.slice/user@1000.service/app.slice/inference-provider.service\n';
  expect(process(4242, { ...environment, SYSTEMD_EXEC_PID: 4242 }, user)).toBe('inference-provider.service');
  expect(process(4243, { ...environment, SYSTEMD_EXEC_PID: 4243 }, '0::/system.slice/gpu@7.service\n')).toBe('gpu@7.service');
  const hybrid = '4:memory:/system.slice/gpu.service\n1:name=systemd:/system.slice/gpu.service\n0::/system.slice/gpu.service\n';
  expect(process(4244, { SYSTEMD_EXEC_PID: 4244 }, hybrid)).toBe('gpu.service');
  // In a container, the control group has no name.
  expect(process(4245, { SYSTEMD_EXEC_PID: 4245 }, '0::/\n')).toBe('a unit');
  // A shell in a terminal that is a unit, and one of a login.
  const terminal = '0::/user.slice/user-1000.slice/user@1000.service/app.slice/konsole.service\n';
  expect(process(4246, { ...environment, SYSTEMD_EXEC_PID: 4100 }, terminal)).toBeNull();
  expect(process(4247, { LANG: 'C.UTF-8' }, '0::/user.slice/user-1000.slice/session-3.scope\n')).toBeNull();
  expect(systemdUnitOf(4248, dir)).toBeNull();
});

it('launchd reads the plist from the folder of user agents', async () => {
  vi.stubEnv('HOME', dir);
  const { run } = tool({ launchctl: [{ code: 113, stderr: NOT_FOUND }, {}] });
  await (await serviceManager(dir, 'launchd', run)).start(DEFINITION);
  expect(existsSync(join(dir, 'Library', 'LaunchAgents', 'inference-provider.plist'))).toBe(true);
});

it('an unknown manager is refused by name', async () => {
  await expect(serviceManager(dir, 'upstart')).rejects.toThrow('unknown service manager upstart; use one of launchd, systemd, supervisor');
});

it('the environment of a service has no loader variables and no keys', () => {
  const env = {
    PATH: '/bin',
    NODE_OPTIONS: '--require=/x',
    LD_PRELOAD: '/x',
    DYLD_INSERT_LIBRARIES: '/x',
    AWS_SECRET_ACCESS_KEY: 'x',
    OPENAI_API_KEY: 'x',
    HOME: '/h',
  };
  expect(serviceEnvironment(env)).toEqual({ PATH: '/bin', HOME: '/h' });
});
