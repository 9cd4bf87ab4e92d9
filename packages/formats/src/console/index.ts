/** The bodies of the console API and of the admin API: what a web console or an agent sends and gets. */
export * from './accounts.js';
export * from './admin.js';
export * from './machine-view.js';
export * from './machines.js';
export * from './money.js';
export * from './operations.js';
export { MAX_AMOUNT_MICRO_USD } from './shared.js';
export * from './usage.js';
