/** Build of the console: hashed files, HTML of the documents, compressed copies, and the list of page routes. */
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';
import { compressed } from './build/compressed.js';
import { documentHtml } from './build/documents/document-html.js';
import { documents } from './build/documents/documents.js';
import { noEvaluation } from './build/no-evaluation.js';
import { pageList } from './build/page-list.js';
import { stylesheetFirst } from './build/stylesheet-first.js';
import { workspaceSources } from './build/workspace-sources.js';
import { PATHS } from './src/routing/paths.js';

/** `COORDINATOR`: where `npm run dev` finds a coordinator. */
const { COORDINATOR = 'http://127.0.0.1:8080', BROTLI_QUALITY = '11' } = process.env;

export default defineConfig({
  plugins: [
    workspaceSources(),
    react(),
    noEvaluation(),
    documents(),
    pageList(Object.values(PATHS)),
    stylesheetFirst(),
    documentHtml(),
    compressed(Number(BROTLI_QUALITY)),
  ],
  build: {
    target: ['chrome123', 'edge123', 'firefox128', 'safari17.5'],
    manifest: true,
    // The content security policy allows files only, no inline assets.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: {
    proxy: Object.fromEntries(['/v1', '/console', '/admin/v1', '/openapi.json'].map((path) => [path, { target: COORDINATOR }])),
  },
});
