import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { ROOT } from '../release/manifest.js';

const UNITS = join(ROOT, 'deploy/systemd');
const services = readdirSync(UNITS).filter((file) => file.endsWith('.service'));
const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0;

/** Exposure by `systemd-analyze security`, in tenths: 0 is the least, 100 the most. A plain service has 96. */
const MAX_EXPOSURE = 25;

function settingOf(file: string, name: string): string | undefined {
  return new RegExp(`^${name}=(.*)$`, 'm').exec(readFileSync(join(UNITS, file), 'utf8'))?.[1];
}

describe.skipIf(!hasSystemd)('deploy/systemd, by systemd-analyze', () => {
  // `systemd-analyze verify` requires the programs of ExecStart on this machine.
  const folder = mkdtempSync(join(tmpdir(), 'units-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  cpSync(UNITS, folder, { recursive: true });
  for (const file of services) {
    const text = readFileSync(join(folder, file), 'utf8').replace(/\/usr\/local\/bin\/inference-\w+/, '/bin/true');
    writeFileSync(join(folder, file), text);
  }

  it('finds no unknown or wrong setting', () => {
    const { status, stderr } = spawnSync(
      'systemd-analyze',
      ['verify', '--man=no', ...readdirSync(folder).map((file) => join(folder, file))],
      { encoding: 'utf8' },
    );
    // Other units of this machine may have findings of their own.
    expect(stderr.split('\n').filter((line) => line.includes(folder))).toEqual([]);
    expect(status).toBe(0);
  });

  it.each(services)('%s is confined', (file) => {
    const args = ['security', '--offline=true', '--no-pager', `--threshold=${MAX_EXPOSURE}`, join(folder, file)];
    execFileSync('systemd-analyze', args, { stdio: 'pipe' });
  });
});

describe('deploy/systemd', () => {
  it.each(['inference-coordinator.service', 'inference-provider.service'])(
    '%s leaves more time to stop than the program drains',
    (file) => {
      expect(Number(settingOf(file, 'TimeoutStopSec'))).toBeGreaterThanOrEqual(25 + 15);
    },
  );

  it('the backup runs as the user whose files it reads', () => {
    const [service, backup] = ['inference-coordinator.service', 'inference-coordinator-backup.service'];
    expect(settingOf(backup as string, 'User')).toBe(settingOf(service as string, 'User'));
    expect(settingOf(backup as string, 'StateDirectory')?.split(' ')).toContain(settingOf(service as string, 'StateDirectory'));
  });
});
