/** Says where the link of a mail is to be found, which in development mode is the coordinator's log. */
import { useSettings } from '../../api/session.js';
import { Note } from '../../ui/feedback/note.js';

export function MailNote({ sent }: { readonly sent: string }) {
  const settings = useSettings();
  return (
    <Note tone="good" title="Look into your mail.">
      <p>{sent}</p>
      {settings?.mail_in_log ? (
        <p>
          This coordinator runs in development mode and sends no mail: the link stands in its log, in the line with{' '}
          <code>"msg":"mail"</code>.
        </p>
      ) : null}
    </Note>
  );
}
