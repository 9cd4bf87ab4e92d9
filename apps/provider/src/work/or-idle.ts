/** Tells whoever reads slow batches that nothing came for a while. */

/** The batches of the source, and null each time that none came for `idleMs` milliseconds. */
export async function* orIdle<Batch>(source: AsyncIterable<Batch>, idleMs: number): AsyncGenerator<Batch | null> {
  const batches = source[Symbol.asyncIterator]();
  try {
    let next = batches.next();
    for (;;) {
      const result = await within(next, idleMs);
      if (result === null) {
        yield null;
        continue;
      }
      if (result.done === true) return;
      yield result.value;
      next = batches.next();
    }
  } finally {
    // Not awaited: it would wait for a batch that may never come.
    void batches.return?.();
  }
}

async function within<Value>(promise: Promise<Value>, milliseconds: number): Promise<Value | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), milliseconds);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
