/** Progress bar of a slow operation. */
interface ProgressProps {
  readonly label: string;
  /** From 0 to 1; absent if unknown. */
  readonly value?: number;
}

export function Progress({ label, value }: ProgressProps) {
  return (
    <div className="progress">
      <span role="status">{label}</span>
      <progress aria-label={label} max={1} {...(value === undefined ? {} : { value })} />
    </div>
  );
}
