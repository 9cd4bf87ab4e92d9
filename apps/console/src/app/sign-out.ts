/** `useSignOut`: mutation that ends the session in all tabs and opens the home page. Shows a toast if it fails. */
import { useMutation } from '@tanstack/react-query';
import { useLocation } from 'wouter';
import { api } from '../api/api-client.js';
import { useRefreshSession } from '../api/session.js';
import { CONVERSATION_KEY } from '../api/tab-storage.js';
import { PATHS } from '../routing/paths.js';
import { useToast } from '../ui/feedback/toast.js';

export function useSignOut() {
  const [, navigate] = useLocation();
  const refreshSession = useRefreshSession();
  const toast = useToast();
  return useMutation({
    mutationFn: async () => {
      // Revokes the playground's key. If this request fails, the key still expires within the hour.
      await api.delete('/console/v1/playground-key').catch(() => {});
      await api.post('/console/auth/sign-out');
      window.sessionStorage.removeItem(CONVERSATION_KEY);
      await refreshSession();
      navigate(PATHS.home);
    },
    onError: (error) => toast.failure('You are still signed in', error),
  });
}
