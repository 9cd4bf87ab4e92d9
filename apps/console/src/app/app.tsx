/** Wires the console: data, session, theme, messages and pages. */
import { CSPProvider } from '@base-ui/react/csp-provider';
import { QueryClientProvider } from '@tanstack/react-query';
import { useState } from 'react';
import { ToastProvider } from '../ui/toast.js';
import { createQueryClient } from './query.js';
import { Pages } from './router.js';
import { SessionProvider } from './session.js';
import { Shell } from './shell.js';
import { ThemeProvider } from './theme.js';

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
