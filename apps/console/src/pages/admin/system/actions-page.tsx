/** `/admin/actions`: the trail of what operators did. */
import { PageHeader } from '../../../ui/display/page-header.js';
import { ActionList } from './action-list.js';

export function Page() {
  return (
    <>
      <PageHeader title="Audit log" about="Every operator action, recorded before it takes effect. Entries are never deleted." />
      <ActionList subject={null} />
    </>
  );
}
