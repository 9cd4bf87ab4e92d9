/** `readOperator`: name, address and tax ID of the operator, printed on deposit receipts. */
import { isName } from '@inference/protocol';
import { checked, type Environment } from './environment.js';

const MAX_NAME_CHARACTERS = 200;
const MAX_ADDRESS_CHARACTERS = 500;
const MAX_ADDRESS_LINES = 8;
const MAX_TAX_ID_CHARACTERS = 50;

/** Members without a setting are null. Throws StartupError that names the invalid setting. */
export function readOperator(env: Environment) {
  const isLine = (max: number) => (value: string) => value.length <= max && isName(value);
  // The two characters `\n` also stand for a line break.
  const lines = (value: string): string[] => value.split(/\\n|\r?\n/).map((line) => line.trim());
  const isAddress = (value: string): boolean =>
    value.length <= MAX_ADDRESS_CHARACTERS && lines(value).length <= MAX_ADDRESS_LINES && lines(value).every(isName);
  const address = checked(
    env,
    'OPERATOR_ADDRESS',
    isAddress,
    `be at most ${MAX_ADDRESS_CHARACTERS} characters in at most ${MAX_ADDRESS_LINES} lines, separated by \\n`,
  );
  return {
    name: checked(env, 'OPERATOR_NAME', isLine(MAX_NAME_CHARACTERS), `be one line of at most ${MAX_NAME_CHARACTERS} characters`),
    /** Lines separated by line breaks. */
    address: address === null ? null : lines(address).join('\n'),
    taxId: checked(env, 'OPERATOR_TAX_ID', isLine(MAX_TAX_ID_CHARACTERS), `be one line of at most ${MAX_TAX_ID_CHARACTERS} characters`),
  };
}
