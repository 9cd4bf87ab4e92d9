/** `thinkTagsOf` finds the tags around a model's reasoning, by known pairs in its chat template. */

export interface ThinkTags {
  readonly open: string;
  readonly close: string;
}

const KNOWN_PAIRS: readonly ThinkTags[] = [
  { open: '<think>', close: '</think>' },
  { open: '<thinking>', close: '</thinking>' },
  { open: '<seed:think>', close: '</seed:think>' },
  { open: '[THINK]', close: '[/THINK]' },
  { open: '<|START_THINKING|>', close: '<|END_THINKING|>' },
  // Gemma 4.
  { open: '<|channel>thought', close: '<channel|>' },
  // gpt-oss: the analysis channel and everything else before the final answer.
  { open: '<|channel|>analysis<|message|>', close: '<|end|><|start|>assistant<|channel|>final<|message|>' },
];

/** The first known pair of which the template contains a tag, or null. */
export function thinkTagsOf(template: string | null): ThinkTags | null {
  if (template === null) return null;
  return KNOWN_PAIRS.find(({ open, close }) => template.includes(close) || template.includes(open)) ?? null;
}
