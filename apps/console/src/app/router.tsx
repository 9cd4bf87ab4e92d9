/**
 * `Pages`: shows the page of the current URL, if the session may open it. Modules of pages are loaded on demand.
 *
 * After navigation, the document title changes and the heading gets the focus, for users of screen readers and keyboards.
 */
import type { ConsoleMembership } from '@inference/formats';
import { Component, type ComponentType, lazy, type ReactNode, Suspense, useEffect, useLayoutEffect, useRef } from 'react';
import { Redirect, Route, Switch, useLocation } from 'wouter';
import { useActiveAccountState } from '../api/active-account.js';
import { useSession } from '../api/session.js';
import { PAGES } from '../pages/pages.js';
import type { PageRoute } from '../routing/page-route.js';
import { PATHS } from '../routing/paths.js';
import { signInPath } from '../routing/sign-in-return.js';
import { ErrorState } from '../ui/feedback/error-state.js';
import { EmptyState, PageSkeleton } from '../ui/feedback/placeholders.js';
import { LinkButton } from '../ui/forms/button.js';
import { loadPage } from './load-page.js';

/** Components that load the module of their page on first use, or the loaded components themselves. */
const PAGE_COMPONENTS = new Map<PageRoute, ComponentType>(PAGES.map((page) => [page, lazyPage(page)]));

export function Pages() {
  const [location] = useLocation();
  return (
    <PageBoundary key={location}>
      <Switch>
        {PAGES.map((page) => (
          <Route key={page.path} path={page.path}>
            <Guarded page={page} />
          </Route>
        ))}
        <Route>
          <NotFound />
        </Route>
      </Switch>
    </PageBoundary>
  );
}

/** Registers the component of a loaded module, so that its pages render at once. */
export function keepLoaded(load: PageRoute['load'], Page: ComponentType): void {
  for (const page of PAGES) if (page.load === load) PAGE_COMPONENTS.set(page, Page);
}

function lazyPage(page: PageRoute): ComponentType {
  return lazy(async () => ({ default: (await loadPage(page.path, page.load)).Page }));
}

/** Shows the page if the session may open it. Visitors are redirected to sign-in; others see which access they lack. */
function Guarded({ page }: { readonly page: PageRoute }) {
  const session = useSession();
  const [location] = useLocation();
  usePageArrival(page.title);
  const { id: organisationId } = useActiveAccountState();
  const Page = PAGE_COMPONENTS.get(page);
  if (Page === undefined) return <NotFound />;
  if (page.access !== 'public') {
    if (session.state === 'loading') return <PageSkeleton />;
    if (session.state === 'failed') return <ErrorState level={1} error={session.error} onRetry={session.retry} />;
    if (session.state === 'signed-out') return <Redirect to={signInPath(`${location}${window.location.search}`)} replace />;
    if (page.access === 'admin' && !session.me.is_admin) return <AccessDenied />;
    const organisation = session.me.organisations.find(({ id }) => id === organisationId);
    const { permission } = page;
    if (permission !== undefined && organisation?.permissions.includes(permission) === false) {
      return <RoleDenied title={page.title} organisation={organisation} />;
    }
  }
  // A new key remounts the page when the account changes, here or in another tab. Forms hold data of the previous account.
  const pageKey = page.access !== 'public' && session.state === 'signed-in' ? `${session.me.id} ${organisationId}` : null;
  return (
    <Suspense fallback={<PageSkeleton />}>
      <Page key={pageKey} />
    </Suspense>
  );
}

/** Sets the title immediately and focuses the heading when the heading appears. On the first page, the browser controls the focus. */
function usePageArrival(title: string): void {
  const [location] = useLocation();
  const first = useRef(true);
  // Runs before the effects of the page, which may set a more specific title.
  useLayoutEffect(() => {
    document.title = `${title} · Inference network`;
  }, [title]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs for every URL, also of the same page
  useEffect(() => {
    if (!hasNavigated && first.current) {
      first.current = false;
      hasNavigated = true;
      return;
    }
    return focusHeading();
  }, [location]);
}

/** Whether any page was shown before. */
let hasNavigated = false;

/** Focuses the main heading when the heading appears. Returns a function that cancels the wait. */
function focusHeading(): () => void {
  const find = (): boolean => {
    const heading = document.querySelector<HTMLElement>('main h1');
    heading?.focus({ preventScroll: true });
    return heading !== null;
  };
  window.scrollTo(0, 0);
  if (find()) return () => {};
  const observer = new MutationObserver(() => {
    if (find()) observer.disconnect();
  });
  observer.observe(document.body, { childList: true, subtree: true });
  return () => observer.disconnect();
}

function NotFound() {
  usePageArrival('Not found');
  return (
    <EmptyState title="Page not found" level={1} action={<LinkButton href={PATHS.network}>Go to the overview</LinkButton>}>
      Check the address. The page may have moved.
    </EmptyState>
  );
}

function AccessDenied() {
  return (
    <EmptyState title="Operator access required" level={1} action={<LinkButton href={PATHS.network}>Go to the overview</LinkButton>}>
      Your account has no operator access. An operator can grant it under Admin, Accounts.
    </EmptyState>
  );
}

function RoleDenied({ title, organisation }: { readonly title: string; readonly organisation: ConsoleMembership }) {
  return (
    <EmptyState title={title} level={1} action={<LinkButton href={PATHS.organisation}>Show roles</LinkButton>}>
      Your role in {organisation.name} ({organisation.role}) does not permit this. Ask an owner or admin, or switch to another account.
    </EmptyState>
  );
}

interface State {
  readonly error: Error | null;
}

class PageBoundary extends Component<{ readonly children: ReactNode }, State> {
  override state: State = { error: null };

  static getDerivedStateFromError(error: unknown): State {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) return this.props.children;
    // Offline, a reload would replace the console by an error page of the browser.
    const retry = (): void => (navigator.onLine ? window.location.reload() : undefined);
    return <ErrorState subject="This page" error={error} level={1} onRetry={retry} />;
  }
}
