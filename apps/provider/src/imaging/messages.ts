/** IPC messages between the daemon and an image process, which runs one image model. Both come from one build, so there is no version. */
import type { ModelProcessEvent, ModelProcessRequest } from '../model-process/messages.js';
import type { ImageSize } from '../models/image/image-facts.js';

export type ImageEncoding = 'png' | 'jpeg' | 'webp';

export interface ImageRequest {
  readonly prompt: string;
  readonly size: ImageSize;
  /** Number of images, generated in sequence. */
  readonly count: number;
  /** Seed of the first image. On one machine, equal seeds give equal images. If null, the seed is random. */
  readonly seed: number | null;
  /** Denoising steps of each image. */
  readonly steps: number;
  /** Scale of classifier-free guidance (Ho and Salimans). 1 or less: none. */
  readonly guidance: number;
  readonly encoding: ImageEncoding;
  /** Percent, for JPEG and WebP. Null: the encoder's default. */
  readonly quality: number | null;
}

export interface ImageSettings {
  readonly engine: 'onnx' | 'stable-diffusion.cpp';
  /** Folder of the model. */
  readonly modelPath: string;
  /** `auto` uses the available GPU (Metal on a Mac); `none` uses the CPU. */
  readonly gpu: 'auto' | 'none';
  /** Memory in bytes above which the process is killed, to protect the owner's machine. Null if unlimited. */
  readonly memoryLimit: number | null;
  /** Folder of the add-on stable-diffusion.cpp; null if not installed. */
  readonly addOnPath: string | null;
}

export interface ImageEngineFacts {
  /** Compute device, such as `cpu` or `coreml`. */
  readonly device: string;
}

/** In addition to the requests to every model process. */
export type ImageProcessRequest =
  | { readonly type: 'generate'; readonly job: number; readonly request: ImageRequest }
  | { readonly type: 'cancel'; readonly job: number };

export type ToImageEngine = ModelProcessRequest<ImageSettings> | ImageProcessRequest;

export type ImageJobEnd =
  | { readonly kind: 'finished' }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'engine_failed'; readonly message: string };

/** In addition to the events of every model process. */
export type ImageProcessEvent =
  /** The job has begun. `promptTokens` is 0 if the backend cannot count. */
  | { readonly type: 'reading'; readonly job: number; readonly promptTokens: number }
  /** A step is done: `image` images are finished, and `step` of the `steps` steps of the next. */
  | { readonly type: 'step'; readonly job: number; readonly image: number; readonly step: number; readonly steps: number }
  | { readonly type: 'image'; readonly job: number; readonly bytes: Uint8Array }
  | { readonly type: 'ended'; readonly job: number; readonly end: ImageJobEnd };

export type FromImageEngine = ModelProcessEvent<ImageEngineFacts> | ImageProcessEvent;
