/** `/admin` redirects to the health page. */
import { Redirect } from 'wouter';
import { PATHS } from '../../routing/paths.js';

export function Page() {
  return <Redirect to={PATHS.adminHealth} replace />;
}
