/**
 * `ToastProvider` and `useToast`: short, temporary messages about completed actions, which screen readers announce. Forms show their own
 * errors.
 */
import { Toast } from '@base-ui/react/toast';
import { X } from 'lucide-react';
import { type ReactNode, useMemo } from 'react';
import { errorText } from './error-state.js';

export function ToastProvider({ children }: { readonly children: ReactNode }) {
  return (
    <Toast.Provider timeout={6000} limit={3}>
      {children}
      <Toast.Portal>
        <Toast.Viewport className="toasts">
          <Messages />
        </Toast.Viewport>
      </Toast.Portal>
    </Toast.Provider>
  );
}

interface Toasts {
  success(title: string, text?: string): void;
  /** Shows which action failed, and why. */
  failure(title: string, error: unknown): void;
}

export function useToast(): Toasts {
  const { add } = Toast.useToastManager();
  return useMemo(
    () => ({
      success: (title, text) => void add({ title, type: 'good', ...(text === undefined ? {} : { description: text }) }),
      failure: (title, error) => void add({ title, type: 'bad', description: errorText(error), priority: 'high', timeout: 12_000 }),
    }),
    [add],
  );
}

function Messages() {
  const { toasts } = Toast.useToastManager();
  return toasts.map((toast) => (
    <Toast.Root key={toast.id} toast={toast} className="toast" data-tone={toast.type} swipeDirection="right">
      <Toast.Content className="toast-content">
        <div>
          <Toast.Title className="toast-title" />
          <Toast.Description className="toast-text" />
        </div>
        <Toast.Close className="icon-button" aria-label="Dismiss">
          <X size={18} aria-hidden="true" />
        </Toast.Close>
      </Toast.Content>
    </Toast.Root>
  ));
}
