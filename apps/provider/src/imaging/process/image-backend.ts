/** What each engine is within the image process: it draws one picture at a time, and looks between steps whether it still should. */
import type { DrawRequest, ImageEngineFacts } from '../messages.js';

/** A picture before it is encoded: eight bits for each of three colours, line by line. */
export interface Picture {
  readonly width: number;
  readonly height: number;
  readonly rgb: Uint8Array;
}

export interface PictureRequest extends Omit<DrawRequest, 'count' | 'seed' | 'encoding' | 'quality'> {
  /** Determines the picture; decimal digits, and perhaps a sign. */
  readonly seed: string;
}

export interface Painter {
  readonly facts: ImageEngineFacts;
  /** Tokens of a prompt that the model reads. */
  promptTokens(prompt: string): number;
  /** Throws the signal's reason when it is aborted between two steps. */
  paint(request: PictureRequest, onStep: (step: number) => void, signal: AbortSignal): Promise<Picture>;
}
