/**
 * How the rows of a batch are computed. llama.cpp decodes streams together only where their ids are neighbours, so a batch with
 * gaps falls into several computations, each as small as its run of ids. Where a single row takes another path through the
 * kernels than several, a stream that is alone in its run has a copy of itself as company.
 */

export interface Rows {
  /** Rows that the stream adds to the batch: itself, and copies that are forgotten after. */
  readonly own: number;
  /** Rows that are computed together with it, its own included. */
  readonly together: number;
}

/** For sequences in the order of their ids. `least`: rows that a computation has to have, 1 or 2. */
export function rowsOf(ids: readonly number[], least: 1 | 2): Rows[] {
  return ids.map((_, index) => {
    let first = index;
    while (first > 0 && ids[first - 1] === (ids[first] as number) - 1) first--;
    let last = index;
    while (last + 1 < ids.length && ids[last + 1] === (ids[last] as number) + 1) last++;
    const streams = last - first + 1;
    return { own: streams === 1 ? least : 1, together: Math.max(streams, least) };
  });
}
