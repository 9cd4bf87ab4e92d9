import type { BuildOptions } from 'esbuild';

export const BUNDLE: BuildOptions;
/** Packages that programs need beside their bundle. */
export const INSTALLED: readonly string[];
