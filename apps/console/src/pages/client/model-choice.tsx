/** Chooses the models of a key: all of them, or those that are ticked. Models that nobody serves now stay choosable where they were chosen. */
import { useModels } from '../../features/account/models.js';

export interface ModelChoiceProps {
  /** Empty: all. */
  readonly chosen: readonly string[];
  readonly onChange: (models: readonly string[]) => void;
}

export function ModelChoice({ chosen, onChange }: ModelChoiceProps) {
  const { data } = useModels();
  const ids = [...new Set([...chosen, ...(data ?? []).map(({ id }) => id)])].sort();
  const toggle = (id: string, on: boolean): void => onChange(on ? [...chosen, id] : chosen.filter((one) => one !== id));
  return (
    <fieldset className="choices">
      <legend className="field-label">Models</legend>
      {ids.map((id) => (
        <label key={id} className="check-label">
          <input type="checkbox" className="check" checked={chosen.includes(id)} onChange={(event) => toggle(id, event.target.checked)} />
          <span>{id}</span>
        </label>
      ))}
      <p className="field-hint">
        {chosen.length === 0 ? 'No model selected: the key can use every model.' : 'The key can use only the selected models.'}
      </p>
    </fieldset>
  );
}
