/** The first page: what the network does right now. */
import { PageHeader } from '../../ui/page-header.js';

export function Page() {
  return <PageHeader title="Network" about="People's Macs serve AI models to clients who can verify what they got." />;
}
