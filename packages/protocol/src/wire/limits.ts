/** Size limits of requests, messages and images, in bytes unless named otherwise. A peer that exceeds a message limit is disconnected. */

/** Maximum JSON text frame. */
export const MAX_TEXT_FRAME_BYTES = 256 * 1024;
/** Maximum payload of one sealed binary frame, including the AEAD tag. */
export const MAX_FRAME_PAYLOAD_BYTES = 512 * 1024;
/** Maximum plaintext bytes of one request frame. */
export const REQUEST_CHUNK_BYTES = 256 * 1024;
/** Maximum request body without images; also the maximum text in a body with images. */
export const MAX_REQUEST_BYTES = 8 * 1024 * 1024;
/** Maximum request body with images. Sent only to providers that offer `vision` for the model. */
export const MAX_VISION_REQUEST_BYTES = 32 * 1024 * 1024;
/** Maximum unstreamed response. The coordinator buffers it until the signature arrives. */
export const MAX_PLAIN_RESPONSE_BYTES = 32 * 1024 * 1024;
/** Plaintext response bytes that a provider may send before the first `credit` message. */
export const INITIAL_CREDIT_BYTES = 256 * 1024;
/** Maximum bytes queued for a slow peer. Above, the socket is closed. */
export const MAX_UNSENT_BYTES = 16 * 1024 * 1024;
/** Maximum generated images per job. */
export const MAX_IMAGES = 4;
/** Maximum pixels per generated image: the area of 2048 × 2048, in any shape. */
export const MAX_IMAGE_PIXELS = 2048 * 2048;
/** Maximum input images per request. */
export const MAX_INPUT_IMAGES = 20;
/** Maximum size of one input image file, after base64 decoding. */
export const MAX_INPUT_IMAGE_BYTES = 5 * 1024 * 1024;
/** Maximum width or height of an input image, in pixels. */
export const MAX_INPUT_IMAGE_SIDE = 8000;
export const MAX_INPUT_IMAGE_PIXELS = 40_000_000;
/** Maximum prompt tokens per image that a provider may offer. */
export const MAX_IMAGE_TOKENS = 16_384;
