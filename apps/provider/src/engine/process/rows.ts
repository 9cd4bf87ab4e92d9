/**
 * How the rows of a batch are computed. llama.cpp decodes streams together only where their ids are neighbours, so a batch with
 * gaps falls into several computations, each as small as its run of ids. Where a single row takes another path through the
 * kernels than several, a stream that is alone in its run has a copy of itself as company.
 */

/**
 * Rows that each stream adds to the batch: itself, and copies that are forgotten after. For sequences in the order of their
 * ids. `least`: rows that a computation has to have, 1 or 2.
 */
export function rowsOf(ids: readonly number[], min: 1 | 2): number[] {
  return ids.map((id, index) => (ids[index - 1] === id - 1 || ids[index + 1] === id + 1 ? 1 : min));
}
