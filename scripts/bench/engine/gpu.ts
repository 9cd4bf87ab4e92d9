import type { EngineSettings } from '../../../apps/provider/src/engine/messages.js';

const { BENCH_GPU } = process.env;

/** Device of the benched engines: the GPU on a Mac, as in the agent, or with `BENCH_GPU=auto`; else the CPU. */
export const GPU: EngineSettings['gpu'] = process.platform === 'darwin' || BENCH_GPU === 'auto' ? 'auto' : 'none';
