/** Formats recommendations and search results, in 80 columns. */
import { byteSizeText } from '../../models/byte-size-text.js';
import { memoryCeiling } from '../../models/capacity.js';
import { left, right } from '../output/columns.js';
import { clean, dollars, wrapped } from '../output/terminal.js';
import type { Machine, Recommendation, Recommendations } from './recommendations.js';

const NAME_COLUMNS = 41;

export function modelRow(name: string, size: string, speed: string, vision: string, last: string): string {
  return `${left(name, NAME_COLUMNS)}${right(size, 9)}${right(speed, 9)}${right(vision, 7)}${right(last, 14)}`.trimEnd();
}

function machineLine({ chip, memoryBytes, bandwidthGbs, reserve }: Machine): string {
  const bandwidth = bandwidthGbs > 0 ? `, ${bandwidthGbs} GB/s` : ', memory bandwidth unknown';
  const memory = memoryBytes > 0 ? `${byteSizeText(memoryBytes)} of memory, ` : 'memory unknown';
  const free = memoryBytes > 0 ? `${byteSizeText(memoryCeiling(memoryBytes, reserve))} for models` : '';
  return `This machine: ${clean(chip)}, ${memory}${free}${bandwidth}.`;
}

export function speedText(tokensPerSecond: number | null): string {
  if (tokensPerSecond === null) return '-';
  return `~${tokensPerSecond < 10 ? tokensPerSecond.toFixed(1) : Math.round(tokensPerSecond)}`;
}

export function visionText(vision: boolean): string {
  return vision ? 'yes' : '-';
}

export function recommendationLines(found: Recommendations, machine: Machine): string[] {
  return [
    ...recommendationHead(found, machine),
    ...found.models.map((model) => recommendationRow(clean(model.source), model)),
    '',
    ...recommendationFooter(found),
  ];
}

/** Lines above the table, with its heading. */
export function recommendationHead({ models, repositoryProblem }: Recommendations, machine: Machine): string[] {
  const none =
    repositoryProblem === null ? 'No model was found that fits this machine.' : `No models to recommend now: ${repositoryProblem}.`;
  const heading = models.length === 0 ? wrapped('', none) : [modelRow('Model', 'size', 'tokens/s', 'vision', 'earned/day')];
  return [...wrapped('', machineLine(machine)), '', ...heading];
}

/** Explains the figures, and names missing figures. */
export function recommendationFooter({ models, noDemand, repositoryProblem }: Recommendations): string[] {
  return [
    ...(models.length === 0 ? [] : wrapped('', ESTIMATES)),
    ...(models.length === 0
      ? []
      : noDemand === null
        ? wrapped('', EARNINGS)
        : wrapped('', `No demand data, so no estimated earnings: ${noDemand}.`)),
    ...(repositoryProblem === null || models.length === 0 ? [] : wrapped('', `Downloads may be missing: ${repositoryProblem}.`)),
  ];
}

export function recommendationRow(name: string, { bytes, tokensPerSecond, vision, earningsPerDay }: Recommendation): string {
  const earned = earningsPerDay === null ? 'no data' : `~${dollars(Math.round(earningsPerDay / 1e4) * 1e4).slice(0, -4)}`;
  return modelRow(name, byteSizeText(bytes), speedText(tokensPerSecond), visionText(vision), earned);
}

const ESTIMATES = '~ marks estimates: tokens/s of one stream from memory bandwidth and file size.';
const EARNINGS =
  "Earned/day is from the network's last 24 hours and current prices, shared by speed with the present providers, before fees. Demand changes, and nothing is promised.";
