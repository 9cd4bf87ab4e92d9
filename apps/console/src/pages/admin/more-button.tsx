/** Fetches the next page of a list that is shown page after page. */
import { Button } from '../../ui/forms/button.js';

export interface Pages {
  readonly hasNextPage: boolean;
  readonly isFetchingNextPage: boolean;
  readonly fetchNextPage: () => unknown;
}

export function MoreButton({ pages }: { readonly pages: Pages }) {
  if (!pages.hasNextPage) return null;
  return (
    <p className="card-more">
      <Button busy={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
        Show more
      </Button>
    </p>
  );
}
