/** `IncidentBanner`: shows the newest incident that the user has not dismissed, in a bar that overlays the bottom of the page. */
import './incident-banner.css';
import type { Incident } from '@inference/formats';
import { CircleAlert, X } from 'lucide-react';
import { useState } from 'react';
import { Link } from 'wouter';
import { PATHS } from '../routing/paths.js';

const STORAGE_KEY = 'dismissed-incidents';

export function IncidentBanner({ incidents }: { readonly incidents: readonly Incident[] }) {
  const [dismissed, setDismissed] = useState(readDismissed);
  const incident = incidents.find(({ id }) => !dismissed.includes(id));
  if (incident === undefined) return null;
  const dismiss = (): void => {
    // Stores only open incidents, so that the list does not grow.
    const next = incidents.map(({ id }) => id).filter((id) => id === incident.id || dismissed.includes(id));
    writeDismissed(next);
    setDismissed(next);
  };
  return (
    <aside className="incident-banner" data-tone={incident.impact === 'critical' ? 'bad' : 'warn'} aria-label="Open incident">
      <CircleAlert size={18} aria-hidden="true" />
      <p>
        <strong>{incident.title}</strong> <Link href={PATHS.status}>See status</Link>
      </p>
      <button type="button" className="icon-button" aria-label="Dismiss" onClick={dismiss}>
        <X size={18} aria-hidden="true" />
      </button>
    </aside>
  );
}

function readDismissed(): readonly string[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(STORAGE_KEY) ?? '[]');
    return Array.isArray(stored) ? stored.filter((id) => typeof id === 'string') : [];
  } catch {
    return [];
  }
}

function writeDismissed(ids: readonly string[]): void {
  try {
    localStorage.setItem(STORAGE_KEY, JSON.stringify(ids));
  } catch {
    // The browser may forbid storage. The banner then returns with the next visit.
  }
}
