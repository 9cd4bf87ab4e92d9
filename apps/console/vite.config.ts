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

/** Small modules that most pages use. */
const COMMON = /\/lucide-react\/|\/src\/ui\/(?:display|forms\/(?:field|copy-field)|navigation\/url-state)/;
/** The manifest names an entry, and `index.html` its style sheet, only if these files stay out of groups. */
const ENTRY_FILES = /\/src\/main\.tsx$|\.css$|\.html$/;

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
    // Ungrouped, the first page loads 35 files and each further page up to 28. Each file costs more than its unused bytes.
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            { name: 'shell', tags: ['$initial'], test: (id) => !ENTRY_FILES.test(id), priority: 2 },
            { name: 'common', test: COMMON, minShareCount: 2, priority: 1 },
          ],
        },
      },
    },
  },
  server: { proxy: Object.fromEntries(['/v1', '/console', '/admin/v1', '/openapi.json'].map((path) => [path, { target: COORDINATOR }])) },
});
