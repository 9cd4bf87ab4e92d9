/** `AnswerReport`: report on the verification of an answer, with machine, checks, checks that could not run, and remaining limits. */
import './trust.css';
import { Check, X } from 'lucide-react';
import type { ReactNode } from 'react';
import { Fact, Facts } from '../../ui/display/page.js';
import type { CheckLine } from './check-line.js';
import { Legend } from './legend.js';
import { VerdictBadge } from './verdict-badge.js';
import type { Verdict } from './verdicts.js';

export interface AnswerReportProps {
  readonly verdict: Verdict;
  /** The result in one or two sentences. */
  readonly about: string;
  /** Facts about the machine and its answer. */
  readonly facts: readonly { readonly label: string; readonly value: ReactNode }[];
  readonly lines: readonly CheckLine[];
  /** Checks that could not run, because the input lacks something. */
  readonly notChecked?: readonly string[];
  readonly notProved: readonly string[];
}

export function AnswerReport({ verdict, about, facts, lines, notChecked = [], notProved }: AnswerReportProps) {
  const passed = lines.filter(({ ok }) => ok).length;
  return (
    <div className="stack-small answer-report">
      <div>
        <VerdictBadge verdict={verdict} />
      </div>
      <p role="status">{about}</p>
      {facts.length === 0 ? null : (
        <section>
          <h3>Who answered</h3>
          <Facts>
            {facts.map(({ label, value }) => (
              <Fact key={label} label={label}>
                {value}
              </Fact>
            ))}
          </Facts>
        </section>
      )}
      {lines.length === 0 ? null : (
        <section>
          <h3>
            What was checked <span className="muted">{`${passed} of ${lines.length} passed`}</span>
          </h3>
          <ul className="check-lines">
            {lines.map(({ ok, text }) => (
              <li key={text} data-ok={ok}>
                {ok ? <Check size={16} aria-hidden="true" /> : <X size={16} aria-hidden="true" />}
                <span>
                  <span className="visually-hidden">{ok ? 'Passed: ' : 'Failed: '}</span>
                  {text}
                </span>
              </li>
            ))}
          </ul>
        </section>
      )}
      <Sentences title="What could not be checked" list={notChecked} />
      <Sentences title="What this does not prove" list={notProved} />
      <Legend topics={['verdicts', 'receipts']} />
    </div>
  );
}

function Sentences({ title, list }: { readonly title: string; readonly list: readonly string[] }) {
  if (list.length === 0) return null;
  return (
    <section>
      <h3>{title}</h3>
      <ul className="proof-limits">
        {list.map((text) => (
          <li key={text}>{text}</li>
        ))}
      </ul>
    </section>
  );
}
