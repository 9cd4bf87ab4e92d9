/** Converts half-precision floats (IEEE 754 binary16), which many models use and Node 20 cannot convert. */

/** The same 4 bytes as an integer and as a 32-bit float. */
const word = new Uint32Array(1);
const single = new Float32Array(word.buffer);

/** The 16 bits of a number, rounded to nearest, ties to even. */
export function toHalf(value: number): number {
  single[0] = value;
  const bits = word[0] as number;
  const sign = (bits >>> 16) & 0x8000;
  const magnitude = bits & 0x7fff_ffff;
  if (magnitude > 0x7f80_0000) return sign | 0x7e00;
  if (magnitude >= 0x477f_f000) return sign | 0x7c00;
  if (magnitude >= 0x3880_0000) return sign | ((magnitude - 0x3800_0000 + 0xfff + ((magnitude >>> 13) & 1)) >>> 13);
  // Below the smallest normal number: in units of 2^-24.
  const scaled = Math.abs(single[0] as number) * 2 ** 24;
  const floor = Math.floor(scaled);
  const rest = scaled - floor;
  return sign | (floor + (rest > 0.5 || (rest === 0.5 && floor % 2 === 1) ? 1 : 0));
}

export function fromHalf(bits: number): number {
  const sign = (bits & 0x8000) === 0 ? 1 : -1;
  const exponent = (bits >>> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}
