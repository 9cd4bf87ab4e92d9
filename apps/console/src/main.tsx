/** Entry point of the console. */
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { createQueryClient } from './api/query-client.js';
import { App } from './app/app.js';
import { loadPrerenderedDocument } from './app/prerendered-document.js';
import './styles/tokens.css';
import './styles/base.css';
import './styles/shell.css';
import './styles/ui.css';
import './styles/chart.css';
import './styles/owner.css';

const root = document.getElementById('root');
if (root === null) throw new Error('the page has no #root');
const queryClient = createQueryClient();
if (root.querySelector('[data-prerendered]') !== null) await loadPrerenderedDocument(queryClient);
createRoot(root).render(
  <StrictMode>
    <App queryClient={queryClient} />
  </StrictMode>,
);
