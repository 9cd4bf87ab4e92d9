/** `/admin/actions`: audit log of operator actions. */
import { PageHeader } from '../../../ui/display/page.js';
import { AuditLog } from './audit-log.js';

export function Page() {
  return (
    <>
      <PageHeader title="Audit log" about="Every operator action, recorded before it takes effect. Entries are never deleted." />
      <AuditLog subject={null} />
    </>
  );
}
