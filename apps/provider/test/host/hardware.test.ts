/** Host facts from recorded texts of Macs and simulated Linux folders. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { bandwidthOf, chipFacts, HardwareSchema } from '@inference/protocol';
import { Compile } from 'typebox/compile';
import { describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { reportedHardware } from '../../src/daemon/hardware.js';
import { readHostFacts } from '../../src/host/hardware/host-facts.js';
import { linuxFacts, NO_LINUX_TEXTS } from '../../src/host/hardware/linux.js';
import { type MacFactTexts, macFacts } from '../../src/host/hardware/mac.js';

const NOTHING: MacFactTexts = { sysctl: '', gpu: '', platform: '', system: '' };
const MAC: MacFactTexts = {
  sysctl: [
    'machdep.cpu.brand_string: Apple M3 Max',
    'hw.memsize: 68719476736',
    'hw.physicalcpu: 16',
    'hw.model: Mac15,9',
    'hw.perflevel0.physicalcpu: 12',
    'hw.perflevel0.name: Performance',
    'hw.perflevel1.physicalcpu: 4',
    'hw.perflevel1.name: Efficiency',
    '',
  ].join('\n'),
  gpu: `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<array>
	<dict>
		<key>IOClass</key>
		<string>AGXAcceleratorG15X</string>
		<key>PerformanceStatistics</key>
		<dict>
			<key>Device Utilization %</key>
			<integer>3</integer>
		</dict>
		<key>gpu-core-count</key>
		<integer>40</integer>
		<key>model</key>
		<string>Apple M3 Max</string>
	</dict>
</array>
</plist>
`,
  platform: `+-o J514c  <class IOPlatformExpertDevice, id 0x100000226, registered, matched, active, busy 0 (2434 ms), retain 38>
    {
      "IOPlatformUUID" = "5B1F1C3E-0000-0000-0000-000000000000"
      "model" = <"Mac15,9">
      "IOPlatformSerialNumber" = "C02XXXXXXXXX"
      "manufacturer" = <"Apple Inc.">
    }

`,
  system: 'ProductName:\t\tmacOS\nProductVersion:\t\t26.1\nBuildVersion:\t\t25B78\n',
};
const told = Compile(HardwareSchema);

describe('a Mac', () => {
  it('is read from sysctl, ioreg and sw_vers', () => {
    expect(macFacts(MAC)).toEqual({
      chip: 'Apple M3 Max',
      chipFamily: 'M3',
      cpuCores: 16,
      performanceCores: 12,
      efficiencyCores: 4,
      gpuCores: 40,
      memoryBytes: 64 * 2 ** 30,
      bandwidthGbs: 400,
      osName: 'macOS',
      osVersion: '26.1',
      osBuild: '25B78',
      modelIdentifier: 'Mac15,9',
      serialNumber: 'C02XXXXXXXXX',
    });
  });

  it.each([
    ['hw.perflevel0.physicalcpu: 4\nhw.perflevel1.physicalcpu: 6\n', 4, 6],
    // A chip whose slower cores are also performance cores.
    ['hw.perflevel0.physicalcpu: 6\nhw.perflevel0.name: Super\nhw.perflevel1.physicalcpu: 12\nhw.perflevel1.name: Performance\n', 18, 0],
    ['hw.physicalcpu: 8\n', null, null],
  ])('has the cores of %j', (sysctl, performanceCores, efficiencyCores) => {
    expect(macFacts({ ...NOTHING, sysctl })).toMatchObject({ performanceCores, efficiencyCores });
  });

  it('without command output is unknown', () => {
    expect(macFacts(NOTHING)).toEqual({
      chip: 'unknown',
      chipFamily: 'unknown',
      cpuCores: 1,
      performanceCores: null,
      efficiencyCores: null,
      gpuCores: 0,
      memoryBytes: 0,
      bandwidthGbs: 0,
      osName: '',
      osVersion: '',
      osBuild: '',
      modelIdentifier: '',
      serialNumber: '',
    });
  });
});

describe('bandwidth', () => {
  it('goes by chip and, where Apple sells two, by GPU cores', () => {
    const of = (name: string, gpuCores: number): number | null => {
      const chip = chipFacts(name);
      return chip === null ? null : bandwidthOf(chip, gpuCores);
    };
    expect([of('Apple M1', 8), of('Apple M3 Max', 30), of('Apple M4 Max', 40), of('Apple M9', 1), of('constructor', 1)]).toEqual([
      68,
      300,
      546,
      null,
      null,
    ]);
  });
});

describe('a Linux machine', () => {
  const cpu = (processor: number, core: number): string =>
    `processor\t: ${processor}\nmodel name\t: AMD EPYC 7B13\nphysical id\t: 0\ncore id\t: ${core}\n\n`;

  it('is read from /proc, /sys and /etc', () => {
    expect(
      linuxFacts({
        ...NO_LINUX_TEXTS,
        cpuinfo: cpu(0, 0) + cpu(1, 0) + cpu(2, 1) + cpu(3, 1),
        meminfo: 'MemTotal:       24684096 kB\nMemFree: 1 kB\n',
        osRelease: 'PRETTY_NAME="Debian GNU/Linux 13 (trixie)"\nNAME="Debian GNU/Linux"\nVERSION_ID="13"\n',
        kernel: '6.12.48+deb13-amd64\n',
        product: 'Google Compute Engine\n',
      }),
    ).toEqual({
      chip: 'AMD EPYC 7B13',
      chipFamily: 'AMD EPYC 7B13',
      cpuCores: 2,
      performanceCores: null,
      efficiencyCores: null,
      gpuCores: 0,
      memoryBytes: 24_684_096 * 1024,
      bandwidthGbs: 0,
      osName: 'Debian GNU/Linux',
      osVersion: '13',
      osBuild: '6.12.48+deb13-amd64',
      modelIdentifier: 'Google Compute Engine',
      serialNumber: '',
    });
    expect(linuxFacts(NO_LINUX_TEXTS)).toMatchObject({ chip: 'unknown', cpuCores: 1, memoryBytes: 0 });
  });

  it('distinguishes two kinds of cores if the kernel does', () => {
    const kinds = (texts: Partial<typeof NO_LINUX_TEXTS>) => {
      const { performanceCores, efficiencyCores } = linuxFacts({ ...NO_LINUX_TEXTS, ...texts });
      return [performanceCores, efficiencyCores];
    };
    expect(kinds({ capacities: ['1024\n', '1024\n', '446\n', '446\n', '446\n'] })).toEqual([2, 3]);
    expect(kinds({ capacities: ['1024', '1024'] })).toEqual([null, null]);
    expect(kinds({ performanceCpus: '0-7\n', efficiencyCpus: '8-15,17\n' })).toEqual([4, 9]);
    expect(kinds({ performanceCpus: 'many', efficiencyCpus: '9-2' })).toEqual([null, null]);
  });

  it('if simulated, is read from its folder, and otherwise from this machine', async () => {
    const root = temporaryDirectory('facts');
    const write = (path: string, text: string): void => {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), text);
    };
    write('proc/cpuinfo', 'processor : 0\nmodel name : Apple M4 Pro\n');
    write('sys/devices/system/cpu/cpu0/cpu_capacity', '1024\n');
    write('sys/devices/system/cpu/cpu1/cpu_capacity', '500\n');
    const facts = await readHostFacts({ platform: 'linux', root });
    expect(facts).toMatchObject({ chip: 'Apple M4 Pro', chipFamily: 'M4', bandwidthGbs: 273, performanceCores: 1, efficiencyCores: 1 });
    expect(facts.memoryBytes).toBeGreaterThan(0);
  });
});

describe('the reported hardware', () => {
  it('can be read by a coordinator, for all texts', async () => {
    const own = reportedHardware(await readHostFacts());
    expect([told.Check(own), own.cpu_cores > 0]).toEqual([true, true]);
    for (const bad of ['<script>', '\u202e', 'a\r\nb', 'x'.repeat(200)]) {
      expect(told.Check(reportedHardware({ ...macFacts(MAC), chipFamily: bad, osName: bad, osVersion: bad, osBuild: bad }))).toBe(true);
    }
    expect(reportedHardware(macFacts(NOTHING))).toEqual({ chip_family: 'unknown', cpu_cores: 1, gpu_cores: 0, bandwidth_gbs: 0 });
  });
});
