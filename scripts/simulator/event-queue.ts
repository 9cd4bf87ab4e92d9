/** `EventQueue`: the simulator's virtual time. Runs events in order of their time, and those of one time in order of creation. */

interface Event {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
}

export class EventQueue {
  readonly #heap: Event[] = [];
  #created = 0;
  /** Current virtual time, in milliseconds. */
  now = 0;

  /** Schedules an event at a time in milliseconds; a past time means now. */
  at(time: number, run: () => void): void {
    const event = { at: Math.max(time, this.now), order: this.#created++, run };
    const heap = this.#heap;
    let place = heap.push(event) - 1;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (!isBefore(event, heap[parent] as Event)) break;
      heap[place] = heap[parent] as Event;
      place = parent;
    }
    heap[place] = event;
  }

  after(ms: number, run: () => void): void {
    this.at(this.now + ms, run);
  }

  /** Runs all events up to and including a time, in milliseconds. */
  runUntil(end: number): void {
    for (let event = this.#heap[0]; event !== undefined && event.at <= end; event = this.#heap[0]) {
      this.#removeFirst();
      this.now = event.at;
      event.run();
    }
    this.now = end;
  }

  #removeFirst(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let place = 0;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Event, heap[child] as Event)) child++;
      if (!isBefore(heap[child] as Event, last)) break;
      heap[place] = heap[child] as Event;
      place = child;
    }
    heap[place] = last;
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
