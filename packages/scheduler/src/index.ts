/** Placement of jobs on providers. Pure: time and randomness are arguments, and nothing imports a Node module. */
export * from './drain-policy.js';
export * from './eligibility.js';
export * from './job-cost.js';
export * from './model-digest.js';
export * from './model-index.js';
export * from './owner-choice.js';
export * from './owner-digests.js';
export * from './owner-prefixes.js';
export * from './plausible-rate.js';
export * from './prefix-affinity.js';
export * from './probe-policy.js';
export * from './provider-groups.js';
export * from './provider-pool.js';
export * from './schedule.js';
export * from './scheduler.js';
export * from './scheduler-constants.js';
export * from './throughput-stats.js';
