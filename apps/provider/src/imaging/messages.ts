/** IPC messages between the daemon and an image process, for all image backends. Both processes come from one build. */
import type { ModelProcessEvent, ModelProcessRequest } from '../model-process/messages.js';
import type { ImageSize } from '../models/image/image-facts.js';

export type ImageEncoding = 'png' | 'jpeg' | 'webp';

export interface ImageRequest {
  readonly prompt: string;
  readonly size: ImageSize;
  /** Number of images, generated in sequence. */
  readonly count: number;
  /** Seed of the noise: equal seeds give equal bytes. If null, the seed is random. */
  readonly seed: number | null;
  /** Denoising steps of each image. */
  readonly steps: number;
  /** A scale. 1 or less means no guidance. */
  readonly guidance: number;
  readonly encoding: ImageEncoding;
  /** Percent, for JPEG and WebP. If null, the encoder's default applies. */
  readonly quality: number | null;
}

export interface ImageSettings {
  readonly engine: 'onnx' | 'stable-diffusion.cpp';
  /** Folder of the model. */
  readonly modelPath: string;
  /** `auto` uses the available GPU (Metal on a Mac); `none` uses the CPU. */
  readonly gpu: 'auto' | 'none';
  /** Memory in bytes above which the process ends, to protect the owner's machine. Null if unlimited. */
  readonly memoryLimit: number | null;
  /** Folder of the installed add-on, for stable-diffusion.cpp. */
  readonly addOnPath: string | null;
}

export interface ImageEngineFacts {
  /** Compute device, such as `cpu` or `coreml`. */
  readonly device: string;
}

/** Requests in addition to those of every model process. */
export type ImageProcessRequest =
  | { readonly type: 'generate'; readonly job: number; readonly request: ImageRequest }
  | { readonly type: 'cancel'; readonly job: number };

export type ToImageEngine = ModelProcessRequest<ImageSettings> | ImageProcessRequest;

export type ImageJobEnd =
  | { readonly kind: 'finished' }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'engine_failed'; readonly message: string };

/** Events in addition to those of every model process. */
export type ImageProcessEvent =
  /** The prompt was read. Padding is not counted. */
  | { readonly type: 'reading'; readonly job: number; readonly promptTokens: number }
  /** After a step, `image` images are finished, and `step` steps of the next. */
  | { readonly type: 'step'; readonly job: number; readonly image: number; readonly step: number; readonly steps: number }
  | { readonly type: 'image'; readonly job: number; readonly bytes: Uint8Array }
  | { readonly type: 'ended'; readonly job: number; readonly end: ImageJobEnd };

export type FromImageEngine = ModelProcessEvent<ImageEngineFacts> | ImageProcessEvent;
