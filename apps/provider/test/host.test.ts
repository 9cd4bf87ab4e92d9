import { expect, test } from 'vitest';
import { bandwidthGbs } from '../src/host/bandwidth.js';
import { readHostFacts } from '../src/host/host-facts.js';
import { linuxFacts } from '../src/host/linux.js';
import { macFacts } from '../src/host/mac.js';

const sysctl = 'machdep.cpu.brand_string: Apple M3 Max\nhw.memsize: 68719476736\nhw.physicalcpu: 16\n';
const ioreg = `<?xml version="1.0" encoding="UTF-8"?>
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
`;

test('a Mac is read from sysctl and ioreg', () => {
  expect(macFacts(sysctl, ioreg)).toEqual({
    chip: 'Apple M3 Max',
    chipFamily: 'M3',
    cpuCores: 16,
    gpuCores: 40,
    memoryBytes: 64 * 2 ** 30,
    bandwidthGbs: 400,
  });
});

test('outputs that are missing leave their facts unknown', () => {
  expect(macFacts('', '')).toEqual({ chip: 'unknown', chipFamily: 'unknown', cpuCores: 1, gpuCores: 0, memoryBytes: 0, bandwidthGbs: 0 });
  expect(linuxFacts('', '')).toMatchObject({ chip: 'unknown', cpuCores: 1, memoryBytes: 0 });
});

test('bandwidth goes by chip and, where the maker sells two, by GPU cores', () => {
  expect([
    bandwidthGbs('Apple M1', 8),
    bandwidthGbs('Apple M3 Max', 30),
    bandwidthGbs('Apple M4 Max', 40),
    bandwidthGbs('Apple M9', 1),
  ]).toEqual([68, 300, 546, 0]);
});

test('Linux is read from /proc', () => {
  const cpuinfo = 'processor\t: 0\nmodel name\t: AMD EPYC 7B13\n\nprocessor\t: 1\nmodel name\t: AMD EPYC 7B13\n';
  expect(linuxFacts(cpuinfo, 'MemTotal:       24684096 kB\nMemFree: 1 kB\n')).toEqual({
    chip: 'AMD EPYC 7B13',
    chipFamily: 'AMD EPYC 7B13',
    cpuCores: 2,
    gpuCores: 0,
    memoryBytes: 24_684_096 * 1024,
    bandwidthGbs: 0,
  });
});

test('this machine can be read', async () => {
  expect((await readHostFacts()).cpuCores).toBeGreaterThan(0);
});
