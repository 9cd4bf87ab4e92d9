/** The tags a model writes around its reasoning, found by looking for known pairs in its chat template. */

export interface ThinkTags {
  readonly open: string;
  readonly close: string;
}

const KNOWN: readonly ThinkTags[] = [
  { open: '<think>', close: '</think>' },
  { open: '<thinking>', close: '</thinking>' },
  { open: '<seed:think>', close: '</seed:think>' },
  { open: '[THINK]', close: '[/THINK]' },
  { open: '<|START_THINKING|>', close: '<|END_THINKING|>' },
  // Gemma 4.
  { open: '<|channel>thought', close: '<channel|>' },
  // gpt-oss: thoughts, and whatever else is said before the answer.
  { open: '<|channel|>analysis<|message|>', close: '<|end|><|start|>assistant<|channel|>final<|message|>' },
];

/** The pair whose closing or opening tag the template names, or null for a model that does not think aloud. */
export function thinkTagsOf(template: string | null): ThinkTags | null {
  if (template === null) return null;
  return KNOWN.find(({ open, close }) => template.includes(close) || template.includes(open)) ?? null;
}
