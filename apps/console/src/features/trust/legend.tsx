/** `Legend`: expandable list of the terms about trust that a page uses, with their meanings. */
import './trust.css';
import { TERMS, type Topic } from './terms.js';

export function Legend({ topics }: { readonly topics: readonly Topic[] }) {
  return (
    <details className="legend">
      <summary>What these words mean</summary>
      {topics.map((topic) => (
        <section key={topic}>
          <p className="legend-title">{TERMS[topic].title}</p>
          <dl className="legend-terms">
            {TERMS[topic].terms.map(({ term, meaning }) => (
              <div key={term}>
                <dt>{term}</dt>
                <dd>{meaning}</dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
    </details>
  );
}
