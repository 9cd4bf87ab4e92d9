/** Models and hardware that a provider reports to the coordinator. */
import Type, { type Static } from 'typebox';
import { Sha256HexSchema } from '../ids.js';
import { labelSchema } from '../label.js';
import { MAX_IMAGE_TOKENS, MAX_IMAGES } from './limits.js';

export const ModelTypeSchema = Type.Union([Type.Literal('text'), Type.Literal('embedding'), Type.Literal('image')]);
export type ModelType = Static<typeof ModelTypeSchema>;

/** Size in pixels as `<width>x<height>`, each of two to four digits. */
export const ImageSizeSchema = Type.String({ pattern: '^[1-9][0-9]{1,3}x[1-9][0-9]{1,3}$' });

export const ImageOfferSchema = Type.Object({
  /** Native size first. */
  sizes: Type.Array(ImageSizeSchema, { minItems: 1, maxItems: 64 }),
  /** Maximum images per job. */
  max_images: Type.Integer({ minimum: 1, maximum: MAX_IMAGES }),
});
export type ImageOffer = Static<typeof ImageOfferSchema>;

/** Media types of input images. */
export const InputImageTypeSchema = Type.Union([
  Type.Literal('image/png'),
  Type.Literal('image/jpeg'),
  Type.Literal('image/webp'),
  Type.Literal('image/gif'),
]);
export type InputImageType = Static<typeof InputImageTypeSchema>;

/** Image input of a text model. Providers that send this member also accept `fetched_images` in a job. */
export const VisionOfferSchema = Type.Object({
  /** Maximum images per request. */
  max_images: Type.Integer({ minimum: 1, maximum: 64 }),
  /** Maximum prompt tokens of one image, including its begin and end tokens. */
  max_image_tokens: Type.Integer({ minimum: 1, maximum: MAX_IMAGE_TOKENS }),
});
export type VisionOffer = Static<typeof VisionOfferSchema>;

export const ModelOfferSchema = Type.Object({
  /** Opaque id that clients pass as `model`. */
  id: Type.String({ minLength: 1, maxLength: 256, pattern: '^[A-Za-z0-9][A-Za-z0-9._:/@+-]*$' }),
  model_type: ModelTypeSchema,
  display_name: labelSchema(256),
  /** For example `8bit`. */
  quantization: labelSchema(32),
  /** Maximum tokens of prompt and answer together. For image models: maximum prompt tokens of the text encoder. */
  context_length: Type.Integer({ minimum: 1 }),
  /** Load state. `on_demand`: loaded when a job arrives. Default: `ready`. */
  state: Type.Optional(Type.Union([Type.Literal('ready'), Type.Literal('loading'), Type.Literal('on_demand')])),
  /** Expected load time in milliseconds while not `ready`. */
  load_ms: Type.Optional(Type.Integer({ minimum: 0, maximum: 3_600_000 })),
  /** Hexadecimal SHA-256 of the model file, as the provider claims. */
  file_sha256: Type.Optional(Sha256HexSchema),
  /** Whether the chat template has think segments; absent: unknown. If false, hidden tokens in a receipt are a violation. */
  thinks: Type.Optional(Type.Boolean()),
  /** Required when `model_type` is `image`; image models without this member get no jobs. */
  image: Type.Optional(ImageOfferSchema),
  /** Only for text models. Absent: the model does not accept images. */
  vision: Type.Optional(VisionOfferSchema),
});
export type ModelOffer = Static<typeof ModelOfferSchema>;

/** Hardware claims beyond the attestation statement, for statistics and placement. */
export const HardwareSchema = Type.Object({
  chip_family: labelSchema(64),
  cpu_cores: Type.Integer({ minimum: 1, maximum: 4096 }),
  gpu_cores: Type.Integer({ minimum: 0, maximum: 4096 }),
  /** Memory bandwidth in GB/s; 0: unknown. */
  bandwidth_gbs: Type.Number({ minimum: 0, maximum: 100_000 }),
  /** Part of `cpu_cores`; absent: unknown. */
  performance_cores: Type.Optional(Type.Integer({ minimum: 0, maximum: 4096 })),
  /** Part of `cpu_cores`; absent: unknown. */
  efficiency_cores: Type.Optional(Type.Integer({ minimum: 0, maximum: 4096 })),
  /** For example `macOS`. */
  os_name: Type.Optional(labelSchema(64)),
  /** For example `26.1`. */
  os_version: Type.Optional(labelSchema(64)),
  /** For example `25B78`. */
  os_build: Type.Optional(labelSchema(64)),
});
export type Hardware = Static<typeof HardwareSchema>;
