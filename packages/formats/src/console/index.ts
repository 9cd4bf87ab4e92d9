/** Schemas of request and response bodies of the console API (`/console/v1`) and the admin API (`/admin/v1`). */
export * from './accounts.js';
export * from './admin-accounts.js';
export * from './admin-operations.js';
export * from './billing.js';
export * from './incidents.js';
export * from './machine-view.js';
export * from './machines.js';
export * from './organisations.js';
export * from './rollouts.js';
export { MAX_AMOUNT_MICRO_USD } from './schema-parts.js';
export * from './usage.js';
