/** `/admin/actions`: audit log of all operator actions, with downloads. */
import { PageHeader } from '../../../ui/display/page.js';
import { DownloadLink } from '../../../ui/forms/download-link.js';
import { AuditLog } from './audit-log.js';

const EXPORT_URL = '/admin/v1/actions/export';

export function Page() {
  return (
    <>
      <PageHeader
        title="Audit log"
        about="Every operator action, recorded before it takes effect."
        actions={
          <>
            <DownloadLink href={`${EXPORT_URL}?format=csv`} fileName="audit-log.csv">
              Download CSV
            </DownloadLink>
            <DownloadLink href={`${EXPORT_URL}?format=jsonl`} fileName="audit-log.jsonl">
              Download JSON
            </DownloadLink>
          </>
        }
      />
      <AuditLog subject={null} />
    </>
  );
}
