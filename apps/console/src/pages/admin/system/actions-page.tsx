/** `/admin/actions`: the trail of what operators did. */
import { PageHeader } from '../../../ui/display/page-header.js';
import { ActionList } from './action-list.js';

export function Page() {
  return (
    <>
      <PageHeader title="What operators did" about="Written down before each change is made. Nothing is ever taken out." />
      <ActionList subject={null} />
    </>
  );
}
