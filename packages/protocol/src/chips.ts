/**
 * Specifications of Apple chips: memory bandwidth, largest configuration sold, and power of desktop Macs.
 *
 * Agents look up their own chip. Coordinators check reported hardware against the table.
 */

export interface ChipFacts {
  /** For example `Apple M3 Max`. */
  readonly name: string;
  /** For example `M3`. */
  readonly family: string;
  /** Of the largest configuration sold. */
  readonly cpuCores: number;
  /** Of the largest configuration sold. */
  readonly gpuCores: number;
  /** Of the largest configuration sold. */
  readonly memoryGb: number;
  /** Memory bandwidth in GB/s, of the slowest variant. */
  readonly bandwidthGbs: number;
  /** Variant with more memory bandwidth, for GPU core counts of at least `fromGpuCores`. */
  readonly faster?: { readonly fromGpuCores: number; readonly bandwidthGbs: number };
}

type Row = readonly [
  chip: string,
  cpuCores: number,
  gpuCores: number,
  memoryGb: number,
  gbs: number,
  faster: readonly [fromGpuCores: number, gbs: number] | null,
  /** Documentation: date of Apple's announcement, and technical specifications for slower variants. */
  source: string,
];

const ROWS: readonly Row[] = [
  // The M1's bandwidth follows from Apple's M2 announcement, which states 50 % more.
  ['M1', 8, 8, 16, 68, null, '2020-11-10 and 2022-06-06'],
  ['M1 Pro', 10, 16, 32, 200, null, '2021-10-18'],
  ['M1 Max', 10, 32, 64, 400, null, '2021-10-18'],
  ['M1 Ultra', 20, 64, 128, 800, null, '2022-03-08'],
  ['M2', 8, 10, 24, 100, null, '2022-06-06'],
  ['M2 Pro', 12, 19, 32, 200, null, '2023-01-17'],
  ['M2 Max', 12, 38, 96, 400, null, '2023-01-17'],
  ['M2 Ultra', 24, 76, 192, 800, null, '2023-06-05'],
  ['M3', 8, 10, 24, 100, null, '2023-10-30'],
  ['M3 Pro', 12, 18, 36, 150, null, '2023-10-30'],
  ['M3 Max', 16, 40, 128, 300, [40, 400], '2023-10-30 and MacBook Pro (14-inch, Nov 2023), technical specifications'],
  ['M3 Ultra', 32, 80, 512, 819, null, '2025-03-05'],
  ['M4', 10, 10, 32, 120, null, '2024-05-07 and 2024-10-28'],
  ['M4 Pro', 14, 20, 64, 273, null, '2024-10-30'],
  ['M4 Max', 16, 40, 128, 410, [40, 546], '2024-10-30 and MacBook Pro (14-inch, 2024), technical specifications'],
  ['M5', 10, 10, 32, 153, null, '2025-10-15'],
  ['M5 Pro', 18, 20, 64, 307, null, '2026-03-03'],
  ['M5 Max', 18, 40, 128, 460, [40, 614], '2026-03-03 and MacBook Pro (14-inch, 2026), technical specifications'],
];

const CHIPS: ReadonlyMap<string, ChipFacts> = new Map(
  ROWS.map(([chip, cpuCores, gpuCores, memoryGb, bandwidthGbs, faster]) => {
    const name = `Apple ${chip}`;
    const facts = { name, family: chip.split(' ')[0] ?? chip, cpuCores, gpuCores, memoryGb, bandwidthGbs };
    return [name, faster === null ? facts : { ...facts, faster: { fromGpuCores: faster[0], bandwidthGbs: faster[1] } }];
  }),
);

/** Facts of a chip by its name in macOS, such as `Apple M3 Max`; null if not listed. */
export function chipFacts(name: string): ChipFacts | null {
  return CHIPS.get(name) ?? null;
}

/** Memory bandwidth in GB/s of the chip variant with this number of GPU cores. */
export function bandwidthOf({ bandwidthGbs, faster }: ChipFacts, gpuCores: number): number {
  return faster !== undefined && gpuCores >= faster.fromGpuCores ? faster.bandwidthGbs : bandwidthGbs;
}

export interface ChipPower {
  /** At the wall, with only the Finder open. */
  readonly idleWatts: number;
  /** At the wall, under full load. */
  readonly maxWatts: number;
}

/** Apple's measurements of desktop Macs. Sources: support.apple.com/102027 (Mac Studio), and the page of the Mac mini (M1, 2020). */
const POWER: ReadonlyMap<string, ChipPower> = new Map([
  ['Apple M1', { idleWatts: 6.8, maxWatts: 39 }],
  ['Apple M1 Max', { idleWatts: 11, maxWatts: 115 }],
  ['Apple M1 Ultra', { idleWatts: 13, maxWatts: 215 }],
  ['Apple M2 Max', { idleWatts: 9, maxWatts: 145 }],
  ['Apple M2 Ultra', { idleWatts: 10, maxWatts: 295 }],
]);

/** Power of a desktop Mac with this chip; a notebook draws less. Null if not listed. */
export function chipPower(name: string): ChipPower | null {
  return POWER.get(name) ?? null;
}
