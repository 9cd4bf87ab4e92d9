/** `EndToEndRequest`: example requests in end-to-end mode, for the quick start. */
import { Link } from 'wouter';
import { useSettings } from '../../api/session.js';
import { END_TO_END_PROMISE } from '../../features/modes/mode-texts.js';
import { PATHS } from '../../routing/paths.js';
import { Note } from '../../ui/feedback/note.js';
import { CopyField } from '../../ui/forms/copy-field.js';
import { endToEndSnippets, proxyCommand } from './end-to-end-snippets.js';
import type { SnippetFacts } from './snippets.js';

export function EndToEndRequest({ facts }: { readonly facts: SnippetFacts }) {
  const isDevelopment = useSettings()?.deposits.includes('development') ?? false;
  const [verifiedFetch, ...throughProxy] = endToEndSnippets(facts);
  return (
    <div className="stack">
      <p>
        {END_TO_END_PROMISE} <Link href={PATHS.modes}>Who sees what</Link>
      </p>
      {isDevelopment ? (
        <Note title="This is a development network with simulated machines">
          <p>
            The requests below are refused until you add <code>allowSimulated: true</code> to the policy, or <code>--allow-simulated</code>{' '}
            to the command.
          </p>
        </Note>
      ) : null}
      <section className="stack-small">
        <h3>JavaScript</h3>
        <p>Pass the verified fetch function to an OpenAI or Anthropic SDK.</p>
        {verifiedFetch.before === null ? null : <CopyField label="Install" value={verifiedFetch.before} />}
        <CopyField label={verifiedFetch.title} multiline value={verifiedFetch.code} />
      </section>
      <section className="stack-small">
        <h3>All other programs</h3>
        <p>Start the proxy on your computer, and use its address as base URL.</p>
        <CopyField label="Start the proxy" value={proxyCommand(facts.base)} />
        {throughProxy.map(({ id, title, code }) => (
          <CopyField key={id} label={title} multiline value={code} />
        ))}
      </section>
      <p className="field-hint">Both accept only machines that Apple certified.</p>
    </div>
  );
}
