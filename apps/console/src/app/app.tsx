/** Composition root: query client, session, theme, toasts and pages. */
import { CSPProvider } from '@base-ui/react/csp-provider';
import { QueryClientProvider } from '@tanstack/react-query';
import { useState } from 'react';
import { createQueryClient } from '../api/query-client.js';
import { SessionProvider } from '../api/session.js';
import { ToastProvider } from '../ui/feedback/toast.js';
import { ThemeProvider } from '../ui/theme/theme.js';
import { Pages } from './router.js';
import { Shell } from './shell.js';

export function App() {
  const [queryClient] = useState(createQueryClient);
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
