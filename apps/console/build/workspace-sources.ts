/** Bundles the workspace's packages from their sources, so that the console can be built before the compiler has run. */
import type { Plugin } from 'vite';
import { sourceOf } from '../../../scripts/bundle/workspace-sources.mjs';

export function workspaceSources(): Plugin {
  return { name: 'workspace-sources', enforce: 'pre', resolveId: (id) => sourceOf(id, []) };
}
