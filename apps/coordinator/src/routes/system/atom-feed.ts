/** `atomFeed` renders incidents and maintenance of the public status as an Atom feed (RFC 4287), for `/status.atom`. */
import type { Incident, NetworkStatus } from '@inference/formats';

const STATUS_LABELS: Readonly<Record<Incident['status'], string>> = {
  investigating: 'Investigating',
  identified: 'Identified',
  monitoring: 'Monitoring',
  resolved: 'Resolved',
  scheduled: 'Scheduled',
  in_progress: 'In progress',
  completed: 'Completed',
};
const MAX_ENTRIES = 50;

/** Renders the {@link MAX_ENTRIES} entries that were updated last. `origin`: of the console. */
export function atomFeed(status: NetworkStatus, origin: string): string {
  const incidents = [...status.open_incidents, ...status.maintenance, ...status.past_incidents]
    .sort((a, b) => Date.parse(b.updated_at) - Date.parse(a.updated_at))
    .slice(0, MAX_ENTRIES);
  const [newest] = incidents;
  return [
    '<?xml version="1.0" encoding="utf-8"?>',
    '<feed xmlns="http://www.w3.org/2005/Atom">',
    `<id>${escapeXml(`${origin}/status.atom`)}</id>`,
    '<title>Status of the inference network</title>',
    `<updated>${newest === undefined ? '1970-01-01T00:00:00.000Z' : newest.updated_at}</updated>`,
    '<author><name>Inference network</name></author>',
    `<link rel="self" type="application/atom+xml" href="${escapeXml(`${origin}/status.atom`)}"/>`,
    `<link rel="alternate" type="text/html" href="${escapeXml(`${origin}/status`)}"/>`,
    ...incidents.map((incident) => entryOf(incident, origin)),
    '</feed>',
    '',
  ].join('\n');
}

function entryOf(incident: Incident, origin: string): string {
  return [
    '<entry>',
    `<id>urn:uuid:${escapeXml(incident.id)}</id>`,
    `<title type="text">${escapeXml(`${STATUS_LABELS[incident.status]}: ${incident.title}`)}</title>`,
    `<published>${incident.created_at}</published>`,
    `<updated>${incident.updated_at}</updated>`,
    `<link rel="alternate" type="text/html" href="${escapeXml(`${origin}/status`)}"/>`,
    // Feed readers unescape the XML, then parse the HTML. Operators' texts are therefore escaped twice: here and in `htmlOf`.
    `<content type="html">${escapeXml(htmlOf(incident))}</content>`,
    '</entry>',
  ].join('\n');
}

/** HTML of an entry: the schedule of maintenance, then the updates, newest first. */
function htmlOf({ kind, starts_at, ends_at, updates }: Incident): string {
  const schedule = kind === 'maintenance' ? `<p>Scheduled from ${starts_at} to ${ends_at}.</p>` : '';
  const texts = updates.map(({ status, message, created_at }) => {
    const lines = message.split(/\r?\n/).map(escapeXml).join('<br>');
    return `<p><strong>${STATUS_LABELS[status]}</strong> (${created_at})<br>${lines}</p>`;
  });
  return schedule + texts.join('');
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&apos;' };

function escapeXml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}
