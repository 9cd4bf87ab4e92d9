/** `ResponseText`: text of a response, formatted from Markdown or unformatted. */
import { type ComponentType, lazy, Suspense, useDeferredValue } from 'react';

interface ResponseTextProps {
  readonly text: string;
  /** Shows the unformatted text. */
  readonly plain: boolean;
}

/** Longer responses are shown unformatted, so that a provider cannot stall the page. */
const MAX_FORMATTED_CHARS = 200_000;

/** Starts loading the formatter before the first response. */
export function preloadMarkdown(): void {
  void loadMarkdown();
}

// Offline or after a deployment, the module cannot be loaded. Responses are then shown unformatted.
const loadMarkdown = (): Promise<{ readonly default: ComponentType<{ readonly text: string }> }> =>
  import('./markdown.js').then(
    ({ Markdown }) => ({ default: Markdown }),
    () => ({ default: PlainText }),
  );
const LazyMarkdown = lazy(loadMarkdown);

export function ResponseText({ text, plain }: ResponseTextProps) {
  // React renders the deferred text after more urgent updates, such as typing.
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
