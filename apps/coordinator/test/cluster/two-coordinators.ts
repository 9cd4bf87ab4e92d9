/** Two coordinators of one network, for tests of the cluster. */
export { startTwoCoordinators, type TwoCoordinators } from '../support/cluster-harness.js';
