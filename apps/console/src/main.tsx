/** Entry point of the console. */
import { start } from './app/start.js';
import './styles/tokens.css';
import './styles/base.css';
import './styles/shell.css';
import './styles/ui.css';
import './styles/chart.css';
import './styles/owner.css';

const root = document.getElementById('root');
if (root === null) throw new Error('the page has no #root');
await start(root);
