/** `jobOutlook`: one sentence on whether this machine gets requests, and otherwise the reason and the remedy. Pure. */
import type { DaemonStatus } from '../../control/daemon-status.js';

interface JobOutlook {
  /**
   * `serving`: jobs may come. `idle`: no demand. `held`: temporarily no jobs, without action of the owner. `needs_owner`: the owner
   * must act.
   */
  readonly state: 'serving' | 'idle' | 'held' | 'needs_owner';
  readonly text: string;
}

export function jobOutlook(status: DaemonStatus): JobOutlook {
  const { connection, trust, models, coordinator_view: view, running_jobs } = status;
  if (status.state === 'starting') return { state: 'held', text: 'Starting: the model is being loaded.' };
  if (status.state === 'stopping') return { state: 'held', text: 'Stopping: finishing running requests.' };
  const { availability } = status;
  if (availability !== null && availability.state !== 'serving') {
    const why = availability.reasons.map(({ text }) => sentence(text)).join(' ');
    return {
      state: 'held',
      text: availability.state === 'leaving' ? `Finishing running requests. ${why}` : `Not accepting requests. ${why}`,
    };
  }
  if (connection.state !== 'connected') {
    return { state: 'needs_owner', text: `Not accepting requests: not connected. ${sentence(connection.problem ?? 'Connecting')}` };
  }
  if (models.length === 0)
    return {
      state: 'needs_owner',
      text: 'Not accepting requests: no model is served. See `inference-provider doctor` and `inference-provider models list`.',
    };
  if (trust === null) return { state: 'held', text: 'Connected. The coordinator is verifying this machine.' };
  if (!trust.routable) {
    return {
      state: 'needs_owner',
      text: `Not accepting requests: ${trust.status.replaceAll('_', ' ')}. ${sentence(trust.status_remedy ?? '')}`,
    };
  }
  if (running_jobs > 0) return { state: 'serving', text: `Serving ${running_jobs} ${running_jobs === 1 ? 'request' : 'requests'}.` };
  if (view === null) return { state: 'serving', text: 'Ready for requests.' };
  const open = view.models.filter(({ routable }) => routable);
  if (view.models.length > 0 && open.length === 0) {
    const [first] = view.models;
    return {
      state: 'held',
      text: `Not accepting requests right now: ${(first?.gate ?? first?.state ?? 'unknown reason').replaceAll('_', ' ')}.`,
    };
  }
  const requestCount = open.reduce((all, { demand }) => all + demand.requests_last_5_minutes, 0);
  if (requestCount === 0) return { state: 'idle', text: 'Ready for requests. There were none for these models in the last five minutes.' };
  const [passed] = view.decisions;
  if (passed !== undefined && passed.outcome !== 'chosen')
    return { state: 'serving', text: `Ready for requests. Last decision: ${sentence(passed.text)}` };
  return { state: 'serving', text: 'Ready for requests.' };
}

function sentence(text: string): string {
  return text === '' || /[.!?]$/.test(text) ? text : `${text}.`;
}
