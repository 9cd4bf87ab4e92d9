/**
 * `CharacterBuffer` keeps surrogate pairs together that are split between pieces of streamed text.
 *
 * Lone surrogates become U+FFFD, because UTF-8 cannot encode them.
 */
export class CharacterBuffer {
  #half = '';

  push(piece: string): string {
    const text = this.#half + piece;
    const last = text.charCodeAt(text.length - 1);
    const split = last >= 0xd800 && last <= 0xdbff;
    this.#half = split ? text.slice(-1) : '';
    return repair(split ? text.slice(0, -1) : text);
  }

  end(): string {
    const rest = repair(this.#half);
    this.#half = '';
    return rest;
  }
}

function repair(text: string): string {
  return /[\ud800-\udfff]/.test(text) ? text.replace(/\p{Surrogate}/gu, '\ufffd') : text;
}
