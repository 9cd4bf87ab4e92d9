/** Choice among a few short values, all visible, such as a time window. */
import { Toggle } from '@base-ui/react/toggle';
import { ToggleGroup } from '@base-ui/react/toggle-group';

interface SegmentedProps<Value extends string> {
  readonly label: string;
  readonly value: Value;
  readonly options: readonly { readonly value: Value; readonly label: string }[];
  readonly onValue: (value: Value) => void;
}

export function Segmented<Value extends string>({ label, value, options, onValue }: SegmentedProps<Value>) {
  return (
    <ToggleGroup
      className="segmented"
      aria-label={label}
      value={[value]}
      onValueChange={([next]) => {
        if (next !== undefined) onValue(next as Value);
      }}
    >
      {options.map((option) => (
        <Toggle key={option.value} value={option.value} className="segment">
          {option.label}
        </Toggle>
      ))}
    </ToggleGroup>
  );
}
