/** Fetches the next page of a list. Nothing where there is none. */
import { Button } from '../../ui/forms/button.js';

export interface MoreButtonProps {
  readonly more: boolean;
  readonly busy: boolean;
  readonly onMore: () => void;
}

export function MoreButton({ more, busy, onMore }: MoreButtonProps) {
  if (!more) return null;
  return (
    <div className="more">
      <Button busy={busy} onClick={onMore}>
        Show more
      </Button>
    </div>
  );
}
