/** Size limits of the wire, in bytes. A peer that exceeds a limit gets an error and is disconnected. */

/** Largest JSON text frame. */
export const MAX_TEXT_FRAME_BYTES = 256 * 1024;
/** Maximum payload of one sealed binary frame, authentication tag included. */
export const MAX_FRAME_PAYLOAD_BYTES = 512 * 1024;
/** Plaintext bytes per request frame. */
export const REQUEST_CHUNK_BYTES = 256 * 1024;
/** Maximum request body of a client without images, and maximum text of a body with images. */
export const MAX_REQUEST_BYTES = 8 * 1024 * 1024;
/** Maximum request body with images. Sent only to providers that offer `vision` for the model. */
export const MAX_VISION_REQUEST_BYTES = 32 * 1024 * 1024;
/** Maximum plain (not streamed) response that a coordinator buffers until the signature arrives. */
export const MAX_PLAIN_RESPONSE_BYTES = 32 * 1024 * 1024;
/** Plaintext response bytes that a provider may send before the coordinator grants more. */
export const INITIAL_CREDIT_BYTES = 256 * 1024;
/** Maximum bytes queued towards a peer that does not drain; beyond, the socket is closed. */
export const MAX_UNSENT_BYTES = 16 * 1024 * 1024;
/** Maximum generated images per job. */
export const MAX_IMAGES = 4;
/** Maximum pixels per generated image: 2048 × 2048, or another shape of equal area. */
export const MAX_IMAGE_PIXELS = 2048 * 2048;
/** Maximum images as input of one request. */
export const MAX_INPUT_IMAGES = 20;
/** Maximum encoded bytes of one input image, base64 removed. */
export const MAX_INPUT_IMAGE_BYTES = 5 * 1024 * 1024;
/** Maximum width and maximum height of an input image. */
export const MAX_INPUT_IMAGE_SIDE = 8000;
/** Maximum pixels of an input image. */
export const MAX_INPUT_IMAGE_PIXELS = 40_000_000;
/** Maximum prompt tokens per image that a provider may offer. */
export const MAX_IMAGE_TOKENS = 16_384;
