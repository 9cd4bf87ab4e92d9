/** The images format (POST /v1/images/generations). */
import type { ImageFormat } from '../format.js';
import { openAiError } from '../open-ai-error.js';
import { ENDPOINT, parseImages } from './request.js';

export const images: ImageFormat = { endpoint: ENDPOINT, parse: parseImages, error: openAiError };
