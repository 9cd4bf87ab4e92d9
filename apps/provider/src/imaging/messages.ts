/**
 * What daemon and image process say to each other over the IPC channel, whichever engine draws in it. Both ends come from one
 * build, so this union is the whole contract.
 */
import type { ModelOrder, ModelSign } from '../model-process/messages.js';
import type { ImageSize } from '../models/image/image-facts.js';

export type ImageEncoding = 'png' | 'jpeg' | 'webp';

export interface DrawRequest {
  readonly prompt: string;
  readonly size: ImageSize;
  /** Images to draw, one after the other. */
  readonly count: number;
  /** With a seed the bytes are the same each time. Null: any. */
  readonly seed: number | null;
  readonly steps: number;
  /** 1 and less: the prompt is followed without being pressed. */
  readonly guidance: number;
  readonly encoding: ImageEncoding;
  /** Percent, for JPEG and WebP. Null: what the encoder does by itself. */
  readonly quality: number | null;
}

export interface ImageSettings {
  readonly engine: 'onnx' | 'stable-diffusion.cpp';
  /** Folder of the model. */
  readonly modelPath: string;
  /** `auto` takes what there is (Metal on a Mac); `none` is the processor. */
  readonly gpu: 'auto' | 'none';
  /** Bytes above which the process ends itself, because the machine is its owner's. Null: it is not watched. */
  readonly memoryLimit: number | null;
  /** Where the add-on is installed, for the engine that is one. */
  readonly addOnPath: string | null;
}

export interface ImageEngineFacts {
  /** What computes, such as `cpu` or `coreml`. */
  readonly device: string;
}

/** What only this kind of process is told. */
export type DrawingOrder =
  | { readonly type: 'draw'; readonly job: number; readonly request: DrawRequest }
  | { readonly type: 'cancel'; readonly job: number };

export type ToImageEngine = ModelOrder<ImageSettings> | DrawingOrder;

export type DrawingEnd =
  | { readonly kind: 'finished' }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'engine_failed'; readonly message: string };

/** What only this kind of process tells. */
export type DrawingNews =
  /** The prompt was read: so many tokens, without those that fill it up. */
  | { readonly type: 'reading'; readonly job: number; readonly promptTokens: number }
  | { readonly type: 'step'; readonly job: number; readonly image: number; readonly step: number; readonly steps: number }
  | { readonly type: 'image'; readonly job: number; readonly bytes: Uint8Array }
  | { readonly type: 'ended'; readonly job: number; readonly end: DrawingEnd };

export type FromImageEngine = ModelSign<ImageEngineFacts> | DrawingNews;
