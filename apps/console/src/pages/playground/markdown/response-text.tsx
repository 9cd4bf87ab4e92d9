/** Text of a response: formatted, or unformatted. */
import { type ComponentType, lazy, Suspense, useDeferredValue } from 'react';

interface ResponseTextProps {
  readonly text: string;
  /** Shows the unformatted text. */
  readonly plain: boolean;
}

/** Longer responses stay plain: a provider must not be able to stall the page. */
const MAX_FORMATTED_CHARS = 200_000;

/** Starts loading the formatter, so that the first response is formatted at once. */
export function preloadMarkdown(): void {
  void loadMarkdown();
}

// A response stays readable as plain text if the module cannot be loaded, for example after a release.
const loadMarkdown = (): Promise<{ readonly default: ComponentType<{ readonly text: string }> }> =>
  import('./markdown.js').then(
    ({ Markdown }) => ({ default: Markdown }),
    () => ({ default: PlainText }),
  );
const LazyMarkdown = lazy(loadMarkdown);

export function ResponseText({ text, plain }: ResponseTextProps) {
  // While a response streams, formatting waits for more urgent work such as typing.
  const shown = useDeferredValue(text);
  if (plain || text.length > MAX_FORMATTED_CHARS) return <PlainText text={text} />;
  return (
    <Suspense fallback={<PlainText text={text} />}>
      <LazyMarkdown text={shown} />
    </Suspense>
  );
}

function PlainText({ text }: { readonly text: string }) {
  return <div className="turn-text">{text}</div>;
}
