/** `OwnerDigests`: the latest digests of all coordinators, and slots that are taken since. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { digestOf, EMPTY_DIGEST, encodeDigest } from '../../src/cluster/model-digest.js';
import { OwnerDigests } from '../../src/cluster/owner-digests.js';
import { poolOf, provider } from '../providers.js';

const DIGEST = digestOf(poolOf([provider('a')]), { queueLength: 0, meanServiceMs: null, imageSizes: [] });
const OTHER = { ...DIGEST, queueLength: 1 };

function known(): OwnerDigests {
  const digests = new OwnerDigests();
  digests.update('peer', 'm', DIGEST, 1, 1000);
  return digests;
}

const takenOf = (digests: OwnerDigests): readonly number[] | undefined => digests.of('m').get('peer')?.taken;

describe('digests of owners', () => {
  it('keep the newest digest by number, and ignore older digests and repetitions', () => {
    const digests = known();
    expect(digests.update('peer', 'm', OTHER, 3, 2000)).toBe(true);
    expect(digests.update('peer', 'm', DIGEST, 2, 3000)).toBe(false);
    expect(digests.update('peer', 'm', DIGEST, 3, 3000)).toBe(false);
    expect(digests.of('m').get('peer')).toMatchObject({ digest: OTHER, heardAt: 2000 });
  });

  it('are decoded at the first look, and an invalid one has no slots', () => {
    const digests = known();
    digests.update('peer', 'm', encodeDigest(OTHER), 2, 1000);
    digests.update('second', 'm', '[1,', 1, 1000);
    expect([...digests.of('m')].map(([owner, { digest }]) => [owner, digest])).toEqual([
      ['peer', OTHER],
      ['second', EMPTY_DIGEST],
    ]);
  });

  it('belong to one model', () => {
    expect([...known().of('m').keys()]).toEqual(['peer']);
    expect(known().of('other').size).toBe(0);
  });

  it('are alive as long as the owner is heard of', () => {
    const digests = known();
    digests.heard('peer', 5000);
    digests.heard('stranger', 5000);
    expect([...digests.of('m')].map(([owner, { heardAt }]) => [owner, heardAt])).toEqual([['peer', 5000]]);
  });

  it('are forgotten by model, or all of an owner', () => {
    const digests = known();
    digests.update('peer', 'other', DIGEST, 1, 1000);
    digests.update('second', 'm', DIGEST, 1, 1000);
    digests.remove('peer', 'other');
    expect([digests.of('other').size, digests.of('m').size]).toEqual([0, 2]);
    digests.remove('peer');
    expect([...digests.of('m').keys()]).toEqual(['second']);
    digests.remove('second', 'm');
    digests.heard('second', 5000);
    expect(digests.of('m').size).toBe(0);
  });
});

describe('own placements', () => {
  it('are subtracted until the next digest after the reply', () => {
    const digests = known();
    const answered = digests.markRequested('peer', 'm', 2);
    expect(takenOf(digests)).toEqual([0, 0, 1]);
    // This coordinator cannot know whether the digest already includes the job.
    digests.update('peer', 'm', DIGEST, 2, 1100);
    expect(takenOf(digests)).toEqual([0, 0, 1]);
    answered();
    expect(takenOf(digests)).toEqual([0, 0, 1]);
    digests.update('peer', 'm', DIGEST, 3, 1200);
    expect(takenOf(digests)).toEqual([]);
  });

  it('of an unknown or forgotten owner need nothing', () => {
    const digests = known();
    digests.markRequested('stranger', 'm', 0)();
    const answered = digests.markRequested('peer', 'm', 0);
    digests.remove('peer');
    answered();
    digests.update('peer', 'm', DIGEST, 1, 2000);
    expect(takenOf(digests)).toEqual([]);
  });

  it('count unanswered slots as taken, and at most the requested slots, in every order of events', () => {
    const anyEvent = fc.oneof(
      fc.record({ kind: fc.constant('ask' as const), classIndex: fc.integer({ min: 0, max: 15 }) }),
      fc.record({ kind: fc.constant('reply' as const), which: fc.nat(20) }),
      fc.record({ kind: fc.constant('digest' as const) }),
    );
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 60 }), (happened) => {
        const digests = known();
        const open: { classIndex: number; answered: () => void }[] = [];
        let [sequence, sinceDigest] = [1, 0];
        for (const one of happened) {
          if (one.kind === 'ask') {
            open.push({ classIndex: one.classIndex, answered: digests.markRequested('peer', 'm', one.classIndex) });
            sinceDigest++;
          } else if (one.kind === 'reply') {
            const [ended] = open.splice(one.which % Math.max(1, open.length), 1);
            ended?.answered();
          } else {
            digests.update('peer', 'm', DIGEST, ++sequence, 2000);
            sinceDigest = open.length;
          }
          const taken = takenOf(digests) ?? [];
          expect(taken.reduce((sum, count) => sum + count, 0)).toBe(sinceDigest);
          for (let index = 0; index < 16; index++)
            expect(taken[index] ?? 0).toBeGreaterThanOrEqual(open.filter(({ classIndex }) => classIndex === index).length);
        }
      }),
      { seed: 21 },
    );
  });
});
