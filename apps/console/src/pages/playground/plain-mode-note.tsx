/** `PlainModeNote`: explains why the playground uses plain mode and not the end-to-end mode. */
import { Link } from 'wouter';
import { PATHS } from '../../routing/paths.js';
import { Note } from '../../ui/feedback/note.js';

export function PlainModeNote() {
  return (
    <Note title="The coordinator sees what you send here">
      The playground uses plain mode. The coordinator delivers the code of this page, so the page cannot promise end-to-end encryption. A
      program that you install yourself can: <Link href={PATHS.modes}>plain and end-to-end mode</Link>.
    </Note>
  );
}
