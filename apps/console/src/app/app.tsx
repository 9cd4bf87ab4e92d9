/** Composition root: query client, session, theme, toasts and pages. */
import { CSPProvider } from '@base-ui/react/csp-provider';
import { type QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { SessionProvider } from '../api/session.js';
import { ToastProvider } from '../ui/feedback/toast.js';
import { ThemeProvider } from '../ui/theme/theme.js';
import { Pages } from './router.js';
import { Shell } from './shell.js';

export function App({ queryClient }: { readonly queryClient: QueryClient }) {
  return (
    <CSPProvider disableStyleElements>
      <QueryClientProvider client={queryClient}>
        <SessionProvider>
          <ThemeProvider>
            <ToastProvider>
              <Shell>
                <Pages />
              </Shell>
            </ToastProvider>
          </ThemeProvider>
        </SessionProvider>
      </QueryClientProvider>
    </CSPProvider>
  );
}
