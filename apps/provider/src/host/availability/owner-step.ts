/** `ownerStep`: what the owner can do, by the reason why this machine does not accept requests. */

const STEPS: Readonly<Record<string, string>> = {
  paused: 'Resume: inference-provider resume',
  outside_schedule: 'None needed. See or change the times: inference-provider schedule',
  owner_active: 'None needed. To serve while you work, remove only_when_idle_minutes from config.toml.',
  idle_unknown: 'Remove only_when_idle_minutes from config.toml.',
  on_battery: 'Connect the power adapter.',
  low_battery: 'Connect the power adapter.',
  too_hot: 'Improve the cooling, or run fewer other programs.',
  no_memory: 'Close programs, or serve a smaller model: inference-provider models recommend',
};

/** Null for a code that this version does not know. */
export function ownerStep(code: string): string | null {
  return STEPS[code] ?? null;
}
