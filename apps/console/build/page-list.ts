/** Writes `pages.json`: the route patterns that a server answers with `index.html`. */
import type { Plugin } from 'vite';

export function pageList(paths: readonly string[]): Plugin {
  return {
    name: 'page-list',
    apply: 'build',
    generateBundle() {
      this.emitFile({ type: 'asset', fileName: 'pages.json', source: `${JSON.stringify(paths, null, 2)}\n` });
    },
  };
}
