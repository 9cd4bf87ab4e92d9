/** Catches what a page throws, a file of it that cannot be loaded included, and offers to try again. */
import { Component, type ReactNode } from 'react';
import { ErrorState } from '../ui/feedback/error-state.js';

interface State {
  readonly error: Error | null;
}

export class PageBoundary extends Component<{ readonly children: ReactNode }, State> {
  override state: State = { error: null };

  static getDerivedStateFromError(error: unknown): State {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override render(): ReactNode {
    const { error } = this.state;
    // A new version of the console has other files: only a fresh page knows their names.
    return error === null ? this.props.children : <ErrorState error={error} level={1} onRetry={() => window.location.reload()} />;
  }
}
