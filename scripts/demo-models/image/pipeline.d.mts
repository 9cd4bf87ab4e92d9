/** Types of `pipeline.mjs`. */

/** Opaque: graphs and settings of a model folder. */
export interface Pipeline {
  readonly length: number;
}

export interface Drawing {
  readonly width: number;
  readonly height: number;
  /** Red, green and blue, row by row. */
  readonly rgb: Uint8Array;
}

export interface DrawSettings {
  readonly width?: number;
  readonly height?: number;
  readonly seed?: number;
  readonly steps?: number;
  readonly guidance?: number;
}

export function load(folder: string, threads?: number): Promise<Pipeline>;
export function draw(model: Pipeline, prompt: string, settings?: DrawSettings): Promise<Drawing>;
