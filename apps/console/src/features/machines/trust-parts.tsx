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
  hardware: 'Verified: the key, the protections of this Mac, and an Apple certificate that binds both.',
  self_signed: 'The key and the protections of this Mac are attested. The level “hardware” also requires device management.',
  none: 'A requirement for every job is not met, so the machine gets no requests.',
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
