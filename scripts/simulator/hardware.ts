/** Invented models and real Apple chips of the simulator. Rates are typical for llama.cpp and models with 4-bit quantization. */

export interface Model {
  readonly id: string;
  /** Memory of the loaded model. */
  readonly gigabytes: number;
  /** Weights read per generated token; less than `gigabytes` for mixture-of-experts models. */
  readonly activeGigabytes: number;
  /** Billions of parameters used per token. */
  readonly activeParameters: number;
}

/** Models, by falling demand. */
export const MODELS: readonly Model[] = [
  { id: 'sim/8b', gigabytes: 4.9, activeGigabytes: 4.9, activeParameters: 8 },
  { id: 'sim/30b-sparse', gigabytes: 18, activeGigabytes: 2, activeParameters: 3.3 },
  { id: 'sim/4b', gigabytes: 2.6, activeGigabytes: 2.6, activeParameters: 4 },
  { id: 'sim/14b', gigabytes: 9, activeGigabytes: 9, activeParameters: 14 },
  { id: 'sim/32b', gigabytes: 19, activeGigabytes: 19, activeParameters: 32 },
  { id: 'sim/1b', gigabytes: 0.8, activeGigabytes: 0.8, activeParameters: 1.2 },
  { id: 'sim/120b-sparse', gigabytes: 63, activeGigabytes: 3.2, activeParameters: 5.1 },
  { id: 'sim/70b', gigabytes: 42, activeGigabytes: 42, activeParameters: 70 },
];

export interface Chip {
  readonly name: string;
  readonly bandwidthGbs: number;
  /** Prompt tokens per second with an 8B model. */
  readonly prefill8b: number;
  /** Share of the memory bandwidth reached by decoding. */
  readonly efficiency: number;
  readonly memory: readonly number[];
  /** Relative frequency of the chip among machines. */
  readonly weight: number;
  /** Share of the chip's machines without a fan. */
  readonly fanlessShare: number;
}

export const CHIPS: readonly Chip[] = [
  { name: 'M1', bandwidthGbs: 68, prefill8b: 110, efficiency: 0.72, memory: [8, 8, 16], weight: 16, fanlessShare: 0.5 },
  { name: 'M1 Pro', bandwidthGbs: 200, prefill8b: 230, efficiency: 0.68, memory: [16, 16, 32], weight: 9, fanlessShare: 0 },
  { name: 'M1 Max', bandwidthGbs: 400, prefill8b: 450, efficiency: 0.58, memory: [32, 64], weight: 5, fanlessShare: 0 },
  { name: 'M1 Ultra', bandwidthGbs: 800, prefill8b: 850, efficiency: 0.42, memory: [64, 128], weight: 1, fanlessShare: 0 },
  { name: 'M2', bandwidthGbs: 100, prefill8b: 160, efficiency: 0.75, memory: [8, 16, 24], weight: 14, fanlessShare: 0.5 },
  { name: 'M2 Pro', bandwidthGbs: 200, prefill8b: 300, efficiency: 0.7, memory: [16, 32], weight: 7, fanlessShare: 0 },
  { name: 'M2 Max', bandwidthGbs: 400, prefill8b: 580, efficiency: 0.6, memory: [32, 64, 96], weight: 4, fanlessShare: 0 },
  { name: 'M2 Ultra', bandwidthGbs: 800, prefill8b: 1050, efficiency: 0.43, memory: [64, 128, 192], weight: 1.5, fanlessShare: 0 },
  { name: 'M3', bandwidthGbs: 100, prefill8b: 165, efficiency: 0.75, memory: [8, 16, 24], weight: 9, fanlessShare: 0.5 },
  { name: 'M3 Pro', bandwidthGbs: 150, prefill8b: 300, efficiency: 0.72, memory: [18, 36], weight: 5, fanlessShare: 0 },
  { name: 'M3 Max', bandwidthGbs: 400, prefill8b: 650, efficiency: 0.6, memory: [36, 64, 128], weight: 3, fanlessShare: 0 },
  { name: 'M3 Ultra', bandwidthGbs: 819, prefill8b: 1250, efficiency: 0.42, memory: [96, 256, 512], weight: 0.7, fanlessShare: 0 },
  { name: 'M4', bandwidthGbs: 120, prefill8b: 190, efficiency: 0.75, memory: [16, 16, 24, 32], weight: 14, fanlessShare: 0.3 },
  { name: 'M4 Pro', bandwidthGbs: 273, prefill8b: 390, efficiency: 0.7, memory: [24, 48, 64], weight: 7, fanlessShare: 0 },
  { name: 'M4 Max', bandwidthGbs: 546, prefill8b: 770, efficiency: 0.58, memory: [48, 64, 128], weight: 4, fanlessShare: 0 },
];
