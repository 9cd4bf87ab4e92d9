/** Size caps of the wire, in bytes. A peer that exceeds one is told so and disconnected. */

/** Largest JSON text frame. */
export const MAX_TEXT_FRAME_BYTES = 256 * 1024;
/** Largest payload of one sealed binary frame, authentication tag included. */
export const MAX_FRAME_PAYLOAD_BYTES = 512 * 1024;
/** Plaintext bytes that a sender puts into one request frame. */
export const REQUEST_CHUNK_BYTES = 256 * 1024;
/** Largest request body that a client may send. */
export const MAX_REQUEST_BYTES = 8 * 1024 * 1024;
/** Largest plain (not streamed) response that a coordinator holds while it waits for the signature. */
export const MAX_PLAIN_RESPONSE_BYTES = 32 * 1024 * 1024;
/** Response bytes (plaintext) that a provider may send before the coordinator grants more. */
export const INITIAL_CREDIT_BYTES = 256 * 1024;
/** Bytes queued in a socket towards a peer that does not drain, after which it is closed. */
export const MAX_UNSENT_BYTES = 16 * 1024 * 1024;
/** Images of one job. */
export const MAX_IMAGES = 4;
/** Pixels of one image: 2048 × 2048, or another shape of as many. */
export const MAX_IMAGE_PIXELS = 2048 * 2048;
