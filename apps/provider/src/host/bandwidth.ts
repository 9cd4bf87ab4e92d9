/** Memory bandwidth by chip in GB/s, from the maker's data sheets. */

interface Row {
  readonly chip: string;
  readonly gbs: number;
  /** GPU cores from which the faster variant of the chip begins. */
  readonly fasterFrom?: { readonly gpuCores: number; readonly gbs: number };
}

const ROWS: readonly Row[] = [
  { chip: 'M1', gbs: 68 },
  { chip: 'M1 Pro', gbs: 200 },
  { chip: 'M1 Max', gbs: 400 },
  { chip: 'M1 Ultra', gbs: 800 },
  { chip: 'M2', gbs: 100 },
  { chip: 'M2 Pro', gbs: 200 },
  { chip: 'M2 Max', gbs: 400 },
  { chip: 'M2 Ultra', gbs: 800 },
  { chip: 'M3', gbs: 100 },
  { chip: 'M3 Pro', gbs: 150 },
  { chip: 'M3 Max', gbs: 300, fasterFrom: { gpuCores: 40, gbs: 400 } },
  { chip: 'M3 Ultra', gbs: 819 },
  { chip: 'M4', gbs: 120 },
  { chip: 'M4 Pro', gbs: 273 },
  { chip: 'M4 Max', gbs: 410, fasterFrom: { gpuCores: 40, gbs: 546 } },
  { chip: 'M5', gbs: 153 },
  { chip: 'M5 Pro', gbs: 307 },
  { chip: 'M5 Max', gbs: 460, fasterFrom: { gpuCores: 40, gbs: 614 } },
];

/** GB/s of a chip such as `Apple M3 Max`; 0 when it is not known. */
export function bandwidthGbs(chip: string, gpuCores: number): number {
  const name = chip.replace(/^Apple\s+/, '');
  const row = ROWS.find((candidate) => candidate.chip === name);
  if (row === undefined) return 0;
  return row.fasterFrom !== undefined && gpuCores >= row.fasterFrom.gpuCores ? row.fasterFrom.gbs : row.gbs;
}
