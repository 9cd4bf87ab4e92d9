/** Switch between light, dark and system theme. */
import { Toggle } from '@base-ui/react/toggle';
import { ToggleGroup } from '@base-ui/react/toggle-group';
import { Monitor, Moon, Sun } from 'lucide-react';
import { type ThemeChoice, useTheme } from './theme.js';

const CHOICES = [
  { value: 'light', label: 'Light', icon: Sun },
  { value: 'dark', label: 'Dark', icon: Moon },
  { value: 'system', label: 'As the system', icon: Monitor },
] as const;

export function ThemeSwitch() {
  const { choice, choose } = useTheme();
  return (
    <ToggleGroup
      className="theme-switch"
      aria-label="Theme"
      value={[choice]}
      onValueChange={([next]) => {
        if (next !== undefined) choose(next as ThemeChoice);
      }}
    >
      {CHOICES.map(({ value, label, icon: Icon }) => (
        <Toggle key={value} value={value} aria-label={label} className="theme-option">
          <Icon size={16} aria-hidden="true" />
        </Toggle>
      ))}
    </ToggleGroup>
  );
}
