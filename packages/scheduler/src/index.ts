/** Placement: the choice of a provider for a job. Time and randomness are arguments; no Node module is imported. */

export * from './cluster/model-digest.js';
export * from './cluster/owner-choice.js';
export * from './cluster/owner-digests.js';
export * from './cluster/owner-prefixes.js';
export * from './cost/job-cost.js';
export * from './cost/throughput-stats.js';
export * from './eligibility.js';
export * from './placement/drain-policy.js';
export { nearTieMs } from './placement/group-ranking.js';
export * from './placement/prefix-affinity.js';
export * from './placement/probe-policy.js';
export * from './placement/provider-selection.js';
export * from './placement/schedule.js';
export * from './placement/scheduler.js';
export * from './pool/model-index.js';
export * from './pool/plausible-rate.js';
export * from './pool/provider-groups.js';
export * from './pool/provider-pool.js';
export * from './scheduler-constants.js';
