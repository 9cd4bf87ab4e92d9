/** `/admin`: operators begin with how it is. */
import { Redirect } from 'wouter';
import { PATHS } from '../../routing/paths.js';

export function Page() {
  return <Redirect to={PATHS.adminHealth} replace />;
}
