/** Columns of the API key table. */
import type { ConsoleKey } from '@inference/formats';
import { Badge } from '../../ui/display/badge.js';
import { Money } from '../../ui/display/money.js';
import type { Column } from '../../ui/display/table.js';
import { Time } from '../../ui/display/time.js';
import type { Tone } from '../../ui/feedback/note.js';
import { Button } from '../../ui/forms/button.js';

const STATES: Readonly<Record<ConsoleKey['state'], readonly [Tone, string]>> = {
  active: ['good', 'Active'],
  expired: ['warn', 'Expired'],
  revoked: ['neutral', 'Revoked'],
};

export function keyColumns(actions: {
  readonly onEdit: (key: ConsoleKey) => void;
  readonly onRevoke: (key: ConsoleKey) => void;
}): Column<ConsoleKey>[] {
  return [
    {
      key: 'name',
      header: 'Name',
      rowHeader: true,
      cell: ({ name, prefix }) => (
        <span className="key-name">
          <span className="breakable">{name}</span>
          <code>{`${prefix}…`}</code>
        </span>
      ),
    },
    {
      key: 'state',
      header: 'State',
      cell: ({ state }) => <Badge tone={STATES[state][0]}>{STATES[state][1]}</Badge>,
    },
    {
      key: 'spent',
      header: 'Spent',
      numeric: true,
      cell: ({ spent_micro_usd, spend_limit_micro_usd }) => (
        <span>
          <Money microUsd={spent_micro_usd} />
          {spend_limit_micro_usd === null ? null : (
            <span className="muted">
              {' of '}
              <Money microUsd={spend_limit_micro_usd} />
            </span>
          )}
        </span>
      ),
    },
    {
      key: 'models',
      header: 'Models',
      cell: ({ models }) => (models === null ? 'All' : models.length === 1 ? <code>{models[0]}</code> : `${models.length} models`),
    },
    {
      key: 'signature',
      header: 'Stream signature',
      cell: ({ signature_form }) => (signature_form === 'comment' ? 'Comment' : 'Event'),
    },
    { key: 'used', header: 'Last used', cell: ({ last_used_at }) => (last_used_at === null ? 'Never' : <Time at={last_used_at} />) },
    { key: 'expires', header: 'Expires', cell: ({ expires_at }) => (expires_at === null ? 'Never' : <Time at={expires_at} as="date" />) },
    {
      key: 'actions',
      header: <span className="visually-hidden">Actions</span>,
      cell: (key) =>
        key.state === 'revoked' ? null : (
          <span className="row-actions">
            <Button size="small" aria-label={`Edit ${key.name}`} onClick={() => actions.onEdit(key)}>
              Edit
            </Button>
            <Button size="small" aria-label={`Revoke ${key.name}`} onClick={() => actions.onRevoke(key)}>
              Revoke
            </Button>
          </span>
        ),
    },
  ];
}
