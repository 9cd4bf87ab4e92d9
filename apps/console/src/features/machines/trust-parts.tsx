/** What a machine's trust level is made of, part by part, with what its owner can do where one does not hold. */
import type { ProviderStatusAnswer } from '@inference/protocol';
import { Card } from '../../ui/display/card.js';
import { WordBadge } from './status-badge.js';
import { inWords, partName, partState, trustLevel } from './status-texts.js';

export interface TrustPartsProps {
  readonly level: string;
  readonly parts: ProviderStatusAnswer['trust_parts'];
}

const LEVEL_ABOUT: Readonly<Record<string, string>> = {
  hardware: 'All of it holds: the key, the protections of this Mac, and a certificate of its maker that binds them.',
  self_signed: 'The key and the protections of this Mac were shown. The level “hardware” needs device management beside it.',
  none: 'Something that every job needs does not hold, so that no request comes.',
};

export function TrustParts({ level, parts }: TrustPartsProps) {
  return (
    <Card title="Trust" about={LEVEL_ABOUT[level]} actions={<WordBadge word={trustLevel(level)} />}>
      <ul className="parts">
        {parts.map(({ name, state, reason, remedy }) => (
          <li key={name} className="part">
            <span className="part-head">
              <span className="part-name">{partName(name)}</span>
              <WordBadge word={partState(state)} />
            </span>
            {reason === undefined ? null : <p className="part-remedy">{remedy ?? inWords(reason)}</p>}
          </li>
        ))}
      </ul>
    </Card>
  );
}
