/** Labels of incidents and maintenance. Forms list them in this order: impacts by severity, statuses in the order in which they occur. */
import type { Incident } from '@inference/formats';
import type { Tone } from '../../ui/feedback/note.js';

export const IMPACTS: Readonly<Record<Incident['impact'], { readonly label: string; readonly tone: Tone }>> = {
  none: { label: 'No impact', tone: 'neutral' },
  minor: { label: 'Minor impact', tone: 'warn' },
  major: { label: 'Major impact', tone: 'warn' },
  critical: { label: 'Critical impact', tone: 'bad' },
};

export const STATUSES: Readonly<Record<Incident['status'], string>> = {
  investigating: 'Investigating',
  identified: 'Identified',
  monitoring: 'Monitoring',
  resolved: 'Resolved',
  scheduled: 'Scheduled',
  in_progress: 'In progress',
  completed: 'Completed',
};

export const COMPONENTS: Readonly<Record<Incident['components'][number], string>> = {
  api: 'API',
  payments: 'Payments',
  console: 'Console',
};

export function hasEnded({ status }: Pick<Incident, 'status'>): boolean {
  return status === 'resolved' || status === 'completed';
}
