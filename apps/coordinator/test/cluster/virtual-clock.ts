import type { Clock } from '../../src/cluster/transport/clock.js';

interface Event {
  readonly at: number;
  readonly order: number;
  readonly callback: () => void;
}

/** Virtual time: callbacks run in order of time, then of creation, and only inside `run`. */
export class VirtualClock implements Clock {
  #now = 0;
  #order = 0;
  #events: Event[] = [];

  now(): number {
    return this.#now;
  }

  setTimer(ms: number, callback: () => void): () => void {
    const event = { at: this.#now + ms, order: this.#order++, callback };
    let index = this.#events.length;
    while (index > 0 && (this.#events[index - 1] as Event).at > event.at) index--;
    this.#events.splice(index, 0, event);
    return () => {
      const place = this.#events.indexOf(event);
      if (place >= 0) this.#events.splice(place, 1);
    };
  }

  defer(callback: () => void): void {
    this.setTimer(0, callback);
  }

  /** Advances the time without running callbacks, like a stall of the process. */
  stall(ms: number): void {
    this.#now += ms;
  }

  /** Runs callbacks until the time has passed, or until `isDone`. */
  run(ms: number, isDone: () => boolean = () => false): void {
    const end = this.#now + ms;
    while (!isDone()) {
      const event = this.#events[0];
      if (event === undefined || event.at > end) {
        this.#now = end;
        return;
      }
      this.#events.shift();
      this.#now = Math.max(this.#now, event.at);
      event.callback();
    }
  }

  /** Like `run`, but also lets promises settle after each step. */
  async runAsync(ms: number, isDone: () => boolean = () => false): Promise<void> {
    const end = this.#now + ms;
    while (this.#now < end && !isDone()) {
      this.run(Math.min(5, end - this.#now), isDone);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}
