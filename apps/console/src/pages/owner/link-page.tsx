/**
 * `/link`: the owner enters the code shown on a machine, reviews the request, and approves or denies it (RFC 8628, section 3.3).
 */
import { useLocation, useSearch } from 'wouter';
import { PATHS } from '../../routing/paths.js';
import { PageHeader } from '../../ui/display/page-header.js';
import { CodeForm } from './code-form.js';
import { DeviceRequest } from './device-request.js';
import { parseUserCode } from './user-code.js';

export function Page() {
  const [, navigate] = useLocation();
  const codeInUrl = new URLSearchParams(useSearch()).get('code') ?? '';
  const typed = codeInUrl === '' ? null : parseUserCode(codeInUrl);
  const reset = (): void => navigate(PATHS.link);
  return (
    <>
      <PageHeader title="Link a machine" about="A linked machine earns for your account, and you can monitor it here." />
      {typed?.kind === 'code' ? (
        <DeviceRequest key={typed.code} code={typed.code} onAnother={reset} />
      ) : (
        <CodeForm
          initial={codeInUrl}
          problem={typed?.kind === 'refused' ? typed.problem : null}
          onCode={(code) => navigate(`${PATHS.link}?code=${code}`)}
        />
      )}
    </>
  );
}
