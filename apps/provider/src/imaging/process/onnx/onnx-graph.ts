/** `OnnxGraph`: an ONNX file loaded into ONNX Runtime, with inputs by name. */
import { InferenceSession, type Tensor } from 'onnxruntime-node';

export interface GraphInput {
  readonly name: string;
  readonly type: string;
  /** Size of each dimension, or a name for a variable size. */
  readonly shape: readonly (number | string)[];
}

/** Execution provider of ONNX Runtime. */
export type Device = 'coreml' | 'webgpu' | 'cpu';

export class OnnxGraph {
  private constructor(
    private readonly session: InferenceSession,
    readonly device: Device,
  ) {}

  /** Loads a file for the first device that works. Throws an Error whose message is meant for the Mac's owner. */
  static async load(path: string, devices: readonly Device[], threads: number): Promise<OnnxGraph> {
    let failure: unknown;
    for (const device of devices) {
      try {
        const session = await InferenceSession.create(path, {
          executionProviders: device === 'cpu' ? ['cpu'] : [device, 'cpu'],
          intraOpNumThreads: threads,
          interOpNumThreads: 1,
          executionMode: 'sequential',
          graphOptimizationLevel: 'all',
          // Errors only, which are also thrown.
          logSeverityLevel: 3,
          // Threads that wait by spinning would occupy cores of the owner's machine.
          extra: { session: { intra_op: { allow_spinning: '0' } } },
        });
        return new OnnxGraph(session, device);
      } catch (error) {
        failure = error;
      }
    }
    throw new Error(`${path} cannot be loaded: ${failure instanceof Error ? failure.message : 'unknown'}`);
  }

  /** Throws if the graph has no such input. */
  input(name: string): GraphInput {
    const found = this.session.inputMetadata.find((input) => input.name === name);
    if (found?.isTensor !== true) throw new Error(`the model has no input ${name}`);
    return { name, type: found.type, shape: found.shape };
  }

  get inputNames(): readonly string[] {
    return this.session.inputNames;
  }

  /** Runs the graph. Returns the first output that `fits` accepts. Throws if there is none. */
  async run(feeds: Readonly<Record<string, Tensor>>, fits: (output: Tensor) => boolean): Promise<Tensor> {
    const outputs = await this.session.run(feeds);
    const fitting = this.session.outputNames.map((name) => outputs[name]).find((output) => output !== undefined && fits(output as Tensor));
    if (fitting === undefined) throw new Error('the model has no output of the expected size');
    return fitting as Tensor;
  }
}
