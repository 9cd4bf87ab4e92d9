/** `/modes`: explains plain and end-to-end mode, and which data each party can see. */
import './network.css';
import { END_TO_END_PROMISE, OBSERVERS } from '../../features/modes/mode-texts.js';
import { PATHS } from '../../routing/paths.js';
import { Card, PageHeader } from '../../ui/display/page.js';
import { Table } from '../../ui/display/table.js';
import { LinkButton } from '../../ui/forms/button.js';

export function Page() {
  return (
    <>
      <PageHeader
        title="Plain and end-to-end mode"
        about="Each request uses one of two modes. They differ in who sees the request and the response."
      />
      <div className="stack">
        <div className="columns">
          <Card title="Plain mode">
            <div className="stack-small">
              <p>
                Any OpenAI or Anthropic client works: change its base URL and API key. The coordinator reads each request in memory, seals
                it to one machine, opens the response and passes it on.
              </p>
              <p>
                The machine signs the response. You can verify that no byte changed on the way. You cannot verify what the coordinator does
                with the content.
              </p>
              <p>The playground uses plain mode.</p>
            </div>
          </Card>
          <Card title="End-to-end mode">
            <div className="stack-small">
              <p>{END_TO_END_PROMISE}</p>
              <p>
                A program on your computer verifies the evidence of the machines, seals each request to three of them (one to eight, as you
                set), and opens and verifies the response. It is a fetch function for JavaScript SDKs, or a local proxy for all other
                programs.
              </p>
              <div>
                <LinkButton href={`${PATHS.quickStart}?request=end-to-end`}>Set up end-to-end mode</LinkButton>
              </div>
            </div>
          </Card>
        </div>
        <Card title="Who sees what" flush>
          <div className="observers">
            <Table
              caption="Who sees what in plain and end-to-end mode"
              columns={[
                { key: 'who', header: 'Who', rowHeader: true, cell: ({ who }) => who },
                { key: 'plain', header: 'Plain mode', cell: ({ plain }) => plain },
                { key: 'end-to-end', header: 'End-to-end mode', cell: ({ endToEnd }) => endToEnd },
              ]}
              rows={OBSERVERS}
              stacked
              rowKey={({ who }) => who}
              empty={null}
            />
          </div>
        </Card>
        <Card title="What neither mode does">
          <ul className="plain-list">
            <li>Hide your account or your network address from the coordinator.</li>
            <li>Hide the lengths of a request and its response, or their times. The coordinator needs lengths and tokens for the bill.</li>
            <li>Prove which program runs on a machine, or what its owner does with the content.</li>
          </ul>
        </Card>
        <Card title="Why this website uses plain mode">
          <div className="stack-small">
            <p>
              The coordinator delivers the code of this website, and could deliver code that sends it your prompts. A page of the
              coordinator therefore cannot promise end-to-end encryption. A program that you install yourself can.
            </p>
          </div>
        </Card>
      </div>
    </>
  );
}
