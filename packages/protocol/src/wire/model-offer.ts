/** What a provider tells of one model it serves, and of the machine it runs on. */
import Type, { type Static } from 'typebox';

export const ModelOfferSchema = Type.Object({
  /** Opaque id that clients pass as `model`. */
  id: Type.String({ minLength: 1, maxLength: 256, pattern: '^[A-Za-z0-9][A-Za-z0-9._:/@+-]*$' }),
  model_type: Type.Union([Type.Literal('text')]),
  display_name: Type.String({ minLength: 1, maxLength: 256 }),
  /** For example `8bit`. */
  quantization: Type.String({ minLength: 1, maxLength: 32 }),
  /** Tokens that prompt and answer may have together. */
  context_length: Type.Integer({ minimum: 1 }),
});
export type ModelOffer = Static<typeof ModelOfferSchema>;

/** Self-reported hardware beyond the attestation statement, for statistics and placement. */
export const HardwareSchema = Type.Object({
  chip_family: Type.String({ minLength: 1, maxLength: 64 }),
  cpu_cores: Type.Integer({ minimum: 1, maximum: 4096 }),
  gpu_cores: Type.Integer({ minimum: 0, maximum: 4096 }),
  /** Memory bandwidth in GB/s; 0 when not known. */
  bandwidth_gbs: Type.Number({ minimum: 0, maximum: 100_000 }),
});
export type Hardware = Static<typeof HardwareSchema>;
