/** `seriesColours`: assigns chart colours by series id. On a page with at most five series, each keeps its colour under every filter. */

/** Number of `--chart-N` colours in the style sheet. */
export const COLOUR_COUNT = 6;
/** Colour of the series that combines the smallest series. */
export const OTHERS_COLOUR = COLOUR_COUNT;

/**
 * Colour numbers by series id, from 1.
 *
 * @param shown Ids of the series in the chart. The colours of up to `COLOUR_COUNT` are distinct.
 * @param all Ids of all series that the page can show under any filter, which determine the preferred colours.
 */
export function seriesColours(shown: readonly string[], all: readonly string[]): ReadonlyMap<string, number> {
  const preferred = assign([...new Set([...all, ...shown])].sort(), hashOf);
  // With more series than colours, several series prefer the same colour. Among the shown series, conflicts are resolved again.
  return assign([...shown].sort(), (id) => (preferred.get(id) ?? 1) - 1);
}

/** Gives each id the colour of its preferred index, or the next free one. Without a free one, ids get {@link OTHERS_COLOUR}. */
function assign(ids: readonly string[], preferredIndex: (id: string) => number): Map<string, number> {
  const count = COLOUR_COUNT - 1;
  const taken = new Set<number>();
  const colours = new Map<string, number>();
  for (const id of ids) {
    if (taken.size === count) {
      colours.set(id, OTHERS_COLOUR);
      continue;
    }
    let index = preferredIndex(id) % count;
    while (taken.has(index)) index = (index + 1) % count;
    taken.add(index);
    colours.set(id, index + 1);
  }
  return colours;
}

/** FNV-1a, 32 bits. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193) >>> 0;
  return hash;
}
