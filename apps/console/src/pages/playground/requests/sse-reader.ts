/** Events of a stream (WHATWG HTML, server-sent events) as its bytes come in, whatever they are cut into. Comments are dropped. */

export class SseReader {
  readonly #decoder = new TextDecoder();
  #rest = '';

  /** The data of each event that these bytes complete. */
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
