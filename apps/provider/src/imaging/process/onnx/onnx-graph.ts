/** `OnnxGraph`: a loaded ONNX graph with inputs and outputs by name. */
import { InferenceSession, type Tensor } from 'onnxruntime-node';

export interface GraphInput {
  readonly name: string;
  readonly type: string;
  /** Size of each dimension, or a name for a variable size. */
  readonly shape: readonly (number | string)[];
}

/** Execution providers, tried in order. */
export type Device = 'coreml' | 'webgpu' | 'cpu';

export class OnnxGraph {
  private constructor(
    private readonly session: InferenceSession,
    readonly device: Device,
  ) {}

  /** Tries the devices in order. Throws an Error with a message for the owner. */
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
          // Errors arrive as exceptions; other log lines are of no use.
          logSeverityLevel: 3,
          // A spinning thread would occupy a core of the owner's machine.
          extra: { session: { intra_op: { allow_spinning: '0' } } },
        });
        return new OnnxGraph(session, device);
      } catch (error) {
        failure = error;
      }
    }
    throw new Error(`${path} cannot be loaded: ${failure instanceof Error ? failure.message : 'unknown'}`);
  }

  input(name: string): GraphInput {
    const found = this.session.inputMetadata.find((input) => input.name === name);
    if (found?.isTensor !== true) throw new Error(`the model has no input ${name}`);
    return { name, type: found.type, shape: found.shape };
  }

  get inputNames(): readonly string[] {
    return this.session.inputNames;
  }

  /** Runs the graph. Returns the first output that `fits` accepts. Throws an Error with a message for the owner. */
  async run(feeds: Readonly<Record<string, Tensor>>, fits: (output: Tensor) => boolean): Promise<Tensor> {
    const outputs = await this.session.run(feeds);
    const fitting = this.session.outputNames.map((name) => outputs[name]).find((output) => output !== undefined && fits(output as Tensor));
    if (fitting === undefined) throw new Error('the model has no output of the expected size');
    return fitting as Tensor;
  }
}
