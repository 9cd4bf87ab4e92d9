/** `Tabs`: tabs with arrow key navigation. */
import { Tabs as Base } from '@base-ui/react/tabs';
import type { ReactNode } from 'react';

interface Tab<Value extends string> {
  readonly value: Value;
  readonly label: ReactNode;
  readonly content: ReactNode;
}

interface TabsProps<Value extends string> {
  readonly label: string;
  readonly tabs: readonly Tab<Value>[];
  /** With `onValue`, the caller controls the selected tab, for example in the URL. */
  readonly value?: Value;
  readonly onValue?: (value: Value) => void;
}

export function Tabs<Value extends string>({ label, tabs, value, onValue }: TabsProps<Value>) {
  return (
    <Base.Root
      className="tabs"
      {...(value === undefined ? { defaultValue: tabs[0]?.value } : { value })}
      onValueChange={(next) => onValue?.(next as Value)}
    >
      <Base.List className="tab-list" aria-label={label} activateOnFocus>
        {tabs.map((tab) => (
          <Base.Tab key={tab.value} value={tab.value} className="tab">
            {tab.label}
          </Base.Tab>
        ))}
      </Base.List>
      {tabs.map((tab) => (
        <Base.Panel key={tab.value} value={tab.value} className="tab-panel">
          {tab.content}
        </Base.Panel>
      ))}
    </Base.Root>
  );
}
