/** `SseReader`: incremental parser for server-sent events (WHATWG HTML) with LF line ends. Ignores comments. */

export class SseReader {
  readonly #decoder = new TextDecoder();
  #rest = '';

  /** Adds received bytes. Returns the data of each event that is now complete. */
  read(bytes: Uint8Array): string[] {
    this.#rest += this.#decoder.decode(bytes, { stream: true });
    const blocks = this.#rest.split('\n\n');
    this.#rest = blocks.pop() ?? '';
    return blocks.flatMap((block) => dataOf(block));
  }
}

function dataOf(block: string): string[] {
  const lines = block.split('\n').flatMap((line) => {
    const [, data] = /^data: ?(.*)$/.exec(line) ?? [];
    return data === undefined ? [] : [data];
  });
  return lines.length === 0 ? [] : [lines.join('\n')];
}
