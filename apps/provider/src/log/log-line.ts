/** `logLineText` formats one JSON log line of the daemon (pino) as text for a terminal. */

/** Key: pino's number of the level. */
const LEVELS: Readonly<Record<number, string>> = { 10: 'trace', 20: 'debug', 30: 'info', 40: 'WARN', 50: 'ERROR', 60: 'FATAL' };
const MAX_LENGTH = 4000;
/** Members that the text states otherwise, or that are the same on every line. */
const LEFT_OUT = new Set(['level', 'time', 'pid', 'hostname', 'msg', 'event']);

/** A line that is not JSON is returned as it is. Control characters become question marks. */
export function logLineText(line: string): string {
  let entry: Record<string, unknown>;
  try {
    entry = JSON.parse(line) as Record<string, unknown>;
    if (typeof entry !== 'object' || entry === null) throw new Error('no object');
  } catch {
    return toPrintable(line);
  }
  const { time, level, msg, event } = entry;
  const facts = Object.entries(entry)
    .filter(([name, value]) => !LEFT_OUT.has(name) && value !== null)
    .map(([name, value]) => `${name}=${typeof value === 'object' ? JSON.stringify(value) : String(value)}`);
  const words = [
    typeof time === 'number' ? localTime(time) : '',
    (LEVELS[typeof level === 'number' ? level : 0] ?? '?').padEnd(5),
    String(msg ?? event ?? ''),
    ...facts,
  ];
  return toPrintable(words.join(' '));
}

function localTime(ms: number): string {
  const date = new Date(ms);
  const two = (value: number): string => String(value).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** Such characters move the cursor or reverse text. */
function toPrintable(text: string): string {
  return text.slice(0, MAX_LENGTH).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '?');
}
