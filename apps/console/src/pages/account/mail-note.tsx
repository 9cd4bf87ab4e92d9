/** Note about a mailed link. In development mode the coordinator logs mails instead of sending them. */
import { useSettings } from '../../api/session.js';
import { Note } from '../../ui/feedback/note.js';

export function MailNote({ sent }: { readonly sent: string }) {
  const settings = useSettings();
  return (
    <Note tone="good" title="Check your email.">
      <p>{sent}</p>
      {settings?.mail_in_log ? (
        <p>
          This coordinator runs in development mode and sends no email: the link is in its log, in the line with <code>"msg":"mail"</code>.
        </p>
      ) : null}
    </Note>
  );
}
