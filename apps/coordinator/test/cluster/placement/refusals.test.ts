import { expect, it } from 'vitest';
import { refused, reportedRefusal } from '../../../src/cluster/placement/refusals.js';

it.each([
  ['a wait that is over before owners without providers', [refused('none_routable'), refused('timeout')], refused('timeout')],
  ['a full queue before an unmet trust floor', [refused('below_trust_floor'), refused('queue_full', 900)], refused('queue_full', 900)],
  ['the earlier retry of two equal reasons', [refused('hopeless', 9000), refused('hopeless', 500)], refused('hopeless', 500)],
  ['a measured wait before an unknown one', [refused('timeout'), refused('timeout', 4000)], refused('timeout', 4000)],
  ['no provider if nobody was asked', [], refused('none_routable')],
] as const)('reports %s', (_what, refusals, expected) => {
  expect(reportedRefusal(refusals)).toEqual(expected);
});
