/** Sleep, stopped processes and clock jumps: detection, socket probes, key renewal, and ended delays. */
import { type Enclave, openEnclave, simulatedHelperCommand } from '@inference/enclave';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { Session } from '../../src/session/session.js';
import { type SessionEvent, stayConnected } from '../../src/session/stay-connected.js';
import { type Wake, WakeDetector } from '../../src/session/wake-detector.js';
import { FakeCoordinator } from '../support/fake-coordinator.js';
import { sessionOptions } from './session-options.js';

const dataDir = temporaryDirectory('wakes');
let enclave: Enclave;
beforeAll(async () => {
  enclave = await openEnclave({ command: simulatedHelperCommand({ dataDir }) });
});
afterAll(() => enclave.close());

/** Clocks that tests advance; the detector's timer never fires. */
function clocks(): { wakeDetector: WakeDetector; heard: Wake[]; pass: (wallMs: number, monotonicMs: number) => void } {
  let [wall, monotonic] = [1_000_000, 0];
  const wakeDetector = new WakeDetector({ wall: () => wall, monotonic: () => monotonic, everyMs: 1 << 30 });
  const heard: Wake[] = [];
  wakeDetector.on((wake) => heard.push(wake));
  const pass = (wallMs: number, monotonicMs: number): void => {
    wall += wallMs;
    monotonic += monotonicMs;
    wakeDetector.check();
  };
  return { wakeDetector, heard, pass };
}

const options = (coordinator: FakeCoordinator, wakeDetector: WakeDetector) => sessionOptions(coordinator, enclave, { wakeDetector });

describe('waking', () => {
  it('is detected from sleep, a stopped process, and a changed clock', () => {
    const { heard, pass, wakeDetector } = clocks();
    pass(1_000, 1_000);
    pass(4_000, 4_000);
    pass(3_600_000, 1_000);
    pass(60_000, 60_000);
    pass(-7_200_000, 1_000);
    expect(heard).toEqual([{ jumpMs: 3_600_000 }, { jumpMs: 60_000 }, { jumpMs: -7_200_000 }]);
    wakeDetector.close();
    pass(3_600_000, 1_000);
    expect(heard).toHaveLength(3);
  });

  it('keeps a responsive socket, and replaces the sealing key', async () => {
    const coordinator = await FakeCoordinator.listen();
    const { wakeDetector, pass } = clocks();
    const leave = new AbortController();
    const running = Session.run(options(coordinator, wakeDetector), leave.signal);
    const session = await coordinator.session();
    await session.admit();
    const before = session.key?.key_id;
    pass(3_600_000, 1_000);
    await session.next('key_update');
    expect(session.key?.key_id).not.toBe(before);
    expect(session.closed).toBe(false);
    leave.abort();
    await running;
    await coordinator.close();
  });

  it('ends a dead socket within seconds', async () => {
    const coordinator = await FakeCoordinator.listen();
    const { wakeDetector, pass } = clocks();
    const liveness = { pingMs: 60_000, silenceMs: 600_000, probeMs: 200 };
    const running = Session.run({ ...options(coordinator, wakeDetector), liveness }, new AbortController().signal);
    const session = await coordinator.session();
    await session.admit();
    session.pauseReading(true);
    pass(30_000, 30_000);
    expect(await running).toMatchObject({ kind: 'lost', reason: 'this machine has slept, and the coordinator is silent' });
    session.pauseReading(false);
    await coordinator.close();
  });

  it('ends a pause between two tries', async () => {
    const coordinator = await FakeCoordinator.listen();
    const { wakeDetector, pass } = clocks();
    const leave = new AbortController();
    let lost: (event: SessionEvent) => void = () => {};
    const ended = new Promise<SessionEvent>((resolve) => (lost = resolve));
    const hour = { firstMs: 3_600_000, maxMs: 3_600_000 };
    const running = stayConnected({ ...options(coordinator, wakeDetector), onEvent: lost, backoff: hour }, leave.signal);
    (await coordinator.session()).close();
    expect((await ended).retryInMs).toBeGreaterThan(1_000_000);
    pass(30_000, 1_000);
    await (await coordinator.session()).admit();
    leave.abort();
    await running;
    await coordinator.close();
  });
});

it('a provider stays connected despite a false server time and unknown messages', async () => {
  for (const serverTime of [0, Date.now() + 10 * 365 * 86_400_000]) {
    const coordinator = await FakeCoordinator.listen({ serverTime });
    const wakeDetector = new WakeDetector();
    const skews: { ms: number; large: boolean }[] = [];
    const leave = new AbortController();
    const running = Session.run(
      { ...options(coordinator, wakeDetector), onClockSkew: (ms, large) => skews.push({ ms, large }) },
      leave.signal,
    );
    const session = await coordinator.session();
    await session.admit();
    for (let count = 0; count < 50; count++) session.send({ type: `of_the_future_${count}` });
    session.send({ type: 'challenge', nonce: Buffer.alloc(32).toString('base64') });
    await session.next('challenge_answer');
    expect(skews).toEqual([{ ms: expect.any(Number) as number, large: true }]);
    leave.abort();
    await running;
    wakeDetector.close();
    await coordinator.close();
  }
});
