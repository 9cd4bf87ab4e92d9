/** Limits of reported hardware: nothing above what a machine with the chip can have. */
import type { Attestation, Hardware, ProviderStatusAnswer } from '@inference/protocol';
import fc from 'fast-check';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import {
  plausibleDecodeTps,
  plausibleHardware,
  plausiblePrefillTps,
} from '../../../src/providers/session/registration/plausible-hardware.js';
import { type Harness, until } from '../../support/harness.js';
import type { ScriptedProvider } from '../../support/scripted-provider.js';
import { SharedHarness } from '../../support/shared-harness.js';

const M4_PRO: Hardware = {
  chip_family: 'M4',
  cpu_cores: 14,
  gpu_cores: 20,
  bandwidth_gbs: 273,
  performance_cores: 10,
  efficiency_cores: 4,
};
const machine = (chip_name: string, memory_gb = 48) => ({ chip_name, memory_gb });

describe('a machine', () => {
  it('that reports the values of its chip is accepted unchanged', () => {
    expect(plausibleHardware(M4_PRO, machine('Apple M4 Pro'))).toEqual({ hardware: M4_PRO, memoryGb: 48, adjusted: [] });
    const system = { os_name: 'macOS', os_version: '26.1', os_build: '25B78' };
    expect(plausibleHardware({ ...M4_PRO, ...system }, machine('Apple M4 Pro')).hardware).toMatchObject(system);
    // A chip of a generation that this coordinator does not know.
    const newer = { chip_family: 'M9', cpu_cores: 48, gpu_cores: 120, bandwidth_gbs: 1800 };
    expect(plausibleHardware(newer, machine('Apple M9 Ultra', 1024))).toEqual({ hardware: newer, memoryGb: 1024, adjusted: [] });
  });

  it.each<[string, Partial<Hardware>, Partial<Hardware>, string[]]>([
    ['cores', { cpu_cores: 4096, gpu_cores: 4096 }, { cpu_cores: 14, gpu_cores: 20 }, ['cpu_cores', 'gpu_cores']],
    ['bandwidth', { bandwidth_gbs: 100_000 }, { bandwidth_gbs: 273 }, ['bandwidth_gbs']],
    ['too little bandwidth', { bandwidth_gbs: 1 }, { bandwidth_gbs: 273 }, ['bandwidth_gbs']],
    ['no bandwidth', { bandwidth_gbs: 0 }, { bandwidth_gbs: 273 }, []],
    ['another family', { chip_family: 'M9 Ultra Extreme' }, { chip_family: 'M4' }, ['chip_family']],
  ])('that tells of %s is taken for what its chip is', (_what, change, taken, adjusted) => {
    const believed = plausibleHardware({ ...M4_PRO, ...change }, machine('Apple M4 Pro'));
    expect(believed.hardware).toMatchObject(taken);
    expect(believed.adjusted).toEqual(adjusted);
  });

  it('whose core counts do not add up has none', () => {
    const { hardware, adjusted } = plausibleHardware({ ...M4_PRO, performance_cores: 14, efficiency_cores: 14 }, machine('Apple M4 Pro'));
    expect(hardware).not.toHaveProperty('performance_cores');
    expect(adjusted).toEqual(['performance_cores', 'efficiency_cores']);
  });

  it('has the bandwidth of its variant, and no more memory than its chip is sold with', () => {
    const of = (gpu_cores: number) => plausibleHardware({ ...M4_PRO, gpu_cores }, machine('Apple M4 Max')).hardware.bandwidth_gbs;
    expect([of(32), of(40)]).toEqual([410, 546]);
    expect(plausibleHardware(M4_PRO, machine('Apple M4 Pro', 65_536))).toMatchObject({ memoryGb: 64, adjusted: ['memory_gb'] });
    expect(plausibleHardware(M4_PRO, machine('Some server', 65_536)).memoryGb).toBe(4096);
  });

  it('is within bounds for every report, and valid values stay unchanged', () => {
    const hardware: fc.Arbitrary<Hardware> = fc.record({
      chip_family: fc.string({ minLength: 1, maxLength: 64 }),
      cpu_cores: fc.integer({ min: 1, max: 4096 }),
      gpu_cores: fc.integer({ min: 0, max: 4096 }),
      bandwidth_gbs: fc.double({ min: 0, max: 100_000, noNaN: true }),
      performance_cores: fc.integer({ min: 0, max: 4096 }),
      efficiency_cores: fc.integer({ min: 0, max: 4096 }),
    });
    const chip = fc.constantFrom('Apple M1', 'Apple M5 Max', 'Apple M3 Ultra', 'AMD EPYC', '__proto__');
    fc.assert(
      fc.property(hardware, chip, fc.integer({ min: 1, max: 65_536 }), (told, chip_name, memory_gb) => {
        const { hardware: taken, memoryGb } = plausibleHardware(told, { chip_name, memory_gb });
        expect(taken.cpu_cores).toBeLessThanOrEqual(512);
        expect(taken.bandwidth_gbs).toBeLessThanOrEqual(2000);
        expect((taken.performance_cores ?? 0) + (taken.efficiency_cores ?? 0)).toBeLessThanOrEqual(taken.cpu_cores);
        expect(plausibleHardware(taken, { chip_name, memory_gb: memoryGb })).toEqual({ hardware: taken, memoryGb, adjusted: [] });
      }),
    );
  });

  it('is no faster than its memory bandwidth', () => {
    expect(plausibleDecodeTps(45, M4_PRO)).toBe(45);
    expect(plausibleDecodeTps(1_000_000, M4_PRO)).toBeCloseTo(5460);
    expect(plausiblePrefillTps(100_000_000, M4_PRO)).toBeCloseTo(273_000);
    expect(plausibleDecodeTps(1_000_000, { ...M4_PRO, bandwidth_gbs: 0 })).toBe(5000);
  });
});

describe('statistics and records', () => {
  const shared = new SharedHarness();
  afterAll(() => shared.close());

  let harness: Harness;
  afterEach(() => harness.close());
  const statusOf = async (provider: ScriptedProvider) =>
    (await (await harness.get('/v1/providers/me', (await provider.next('registered')).token ?? '')).json()) as ProviderStatusAnswer;

  it('show the limited values, and the owner sees which were changed', async () => {
    harness = await shared.take();
    const provider = await harness.provider({
      register: (register) => ({
        ...register,
        hardware: { ...register.hardware, cpu_cores: 4096, gpu_cores: 4096, bandwidth_gbs: 99_999 },
      }),
      attestation: (attestation): Attestation => ({ ...attestation, chip_name: 'Apple M4', memory_gb: 65_536 }),
    });
    provider.send({ type: 'load', active_jobs: 0, decode_tps: 1e300, prefill_tps: 1e300 });
    await until(async () => (await statusOf(provider)).measured?.decode_tps != null);
    const status = await statusOf(provider);
    expect(status.hardware).toEqual({
      chip_family: 'M4',
      cpu_cores: 10,
      gpu_cores: 10,
      bandwidth_gbs: 120,
      adjusted: ['cpu_cores', 'gpu_cores', 'bandwidth_gbs', 'memory_gb'],
    });
    expect(status.measured?.decode_tps).toBeCloseTo(2400);
    expect(status.measured?.prefill_tps).toBeCloseTo(120_000);
    const stats = (await (await harness.get('/v1/stats', null)).json()) as { providers: { decode_tps: number }[] };
    expect(stats).toMatchObject({
      total_cpu_cores: 10,
      total_gpu_cores: 10,
      total_memory_gb: 32,
      total_bandwidth_gbs: 120,
      providers: [{ chip: 'Apple M4', chip_family: 'M4', gpu_cores: 10, memory_gb: 32 }],
    });
    expect(stats.providers[0]?.decode_tps).toBeCloseTo(2400);
    const feed = (await (await harness.get('/v1/providers/attestation', null)).json()) as { providers: object[] };
    expect(feed.providers[0]).toMatchObject({ gpu_cores: 10 });
  });

  it.each(['<img src=x>', 'a\r\nb', '\u202eM4', ''])('get no text such as %j', async (os_name) => {
    harness = await shared.take();
    const refused = harness.provider({ register: (register) => ({ ...register, hardware: { ...register.hardware, os_name } }) });
    await expect(refused).rejects.toThrow('bad_message');
  });
});
