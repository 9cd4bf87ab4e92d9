/** Sizes of tensors and labels of quantizations, by the type numbers in ggml.h and llama.h (llama.cpp). */

/** Values per block and bytes per block, by type number. */
const BLOCK_BY_TYPE: Readonly<Record<number, readonly [number, number]>> = {
  0: [1, 4],
  1: [1, 2],
  2: [32, 18],
  3: [32, 20],
  6: [32, 22],
  7: [32, 24],
  8: [32, 34],
  9: [32, 36],
  10: [256, 84],
  11: [256, 110],
  12: [256, 144],
  13: [256, 176],
  14: [256, 210],
  15: [256, 292],
  16: [256, 66],
  17: [256, 74],
  18: [256, 98],
  19: [256, 50],
  20: [32, 18],
  21: [256, 110],
  22: [256, 82],
  23: [256, 136],
  24: [1, 1],
  25: [1, 2],
  26: [1, 4],
  27: [1, 8],
  28: [1, 8],
  29: [256, 56],
  30: [1, 2],
  34: [256, 54],
  35: [256, 66],
  39: [32, 17],
};

/** Bytes of a tensor; 0 for an unknown type, which is left to llama.cpp to check. */
export function tensorBytes(type: number, elements: number): number {
  const block = BLOCK_BY_TYPE[type];
  return block === undefined ? 0 : Math.ceil(elements / block[0]) * block[1];
}

/** Labels in offers, by `general.file_type` of the GGUF header (llama_ftype). */
const LABEL_BY_FILE_TYPE: Readonly<Record<number, string>> = {
  0: 'f32',
  1: 'f16',
  2: '4bit',
  3: '4bit',
  7: '8bit',
  8: '5bit',
  9: '5bit',
  10: '2bit',
  11: '3bit',
  12: '3bit',
  13: '3bit',
  14: '4bit',
  15: '4bit',
  16: '5bit',
  17: '5bit',
  18: '6bit',
  19: '2bit',
  20: '2bit',
  21: '2bit',
  22: '3bit',
  23: '3bit',
  24: '1bit',
  25: '4bit',
  26: '3bit',
  27: '3bit',
  28: '2bit',
  29: '2bit',
  30: '4bit',
  31: '1bit',
  32: 'bf16',
  36: '2bit',
  37: '2bit',
  38: '4bit',
};

/** For example `8bit`; `unknown` for an unknown type. */
export function quantizationLabel(fileType: number | null): string {
  return (fileType === null ? undefined : LABEL_BY_FILE_TYPE[fileType]) ?? 'unknown';
}
