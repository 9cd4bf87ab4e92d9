/** `/account`: cards for name, email address, password, second factors, sessions, data download and deletion. */
import './account.css';
import { useSearch } from 'wouter';
import { useMe, useSettings } from '../../api/session.js';
import { DownloadDataCard } from '../../features/account/download-data-card.js';
import { PageHeader } from '../../ui/display/page.js';
import { Note } from '../../ui/feedback/note.js';
import { DeleteAccountCard } from './delete-account-card.js';
import { PasskeysCard } from './passkeys-card.js';
import { EmailCard, NameCard, PasswordCard } from './profile-cards.js';
import { SessionsCard } from './sessions-card.js';
import { TwoFactorCard } from './two-factor-card.js';

export function Page() {
  const me = useMe();
  const settings = useSettings();
  const query = new URLSearchParams(useSearch());
  return (
    <>
      <PageHeader title="Account" about={me.email} />
      <div className="stack">
        {query.has('error') ? (
          <Note tone="warn" title="This link is no longer valid.">
            <p>Request a new one below.</p>
          </Note>
        ) : null}
        <NameCard me={me} />
        <EmailCard me={me} canSendMail={settings?.mail ?? false} />
        <PasswordCard minCharacters={settings?.min_password_length ?? 10} />
        <TwoFactorCard />
        <PasskeysCard />
        <SessionsCard />
        <DownloadDataCard accountId={null} accountName="your account" />
        <DeleteAccountCard />
      </div>
    </>
  );
}
