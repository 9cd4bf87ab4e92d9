/** Completion scripts for bash, zsh and fish. Texts of commands are quoted, because they may contain any character. */
import { type CompletedCommand, type CompletedOption, firstWords, membersOf } from './completion-table.js';

const PROGRAM = 'inference-provider';
export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

export function completionScript(shell: Shell, table: readonly CompletedCommand[]): string {
  switch (shell) {
    case 'bash':
      return bashScript(table);
    case 'zsh':
      return zshScript(table);
    case 'fish':
      return fishScript(table);
    default:
      return shell satisfies never;
  }
}

function groupsOf(table: readonly CompletedCommand[]): string[] {
  return [...new Set(table.filter(({ name }) => name.includes(' ')).map(({ name }) => name.split(' ')[0] as string))];
}

/** Single-quoted, for POSIX shells. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function bashScript(table: readonly CompletedCommand[]): string {
  const groups = groupsOf(table);
  const cases = table.flatMap(({ name, options, choices, takesFile }) => [
    `    ${quote(name)})`,
    `      options=${quote(options.map((option) => option.name).join(' '))}`,
    ...(choices.length === 0 ? [] : [`      choices=${quote(choices.join(' '))}`]),
    ...(takesFile ? ['      files=1'] : []),
    ...valueCases(options),
    '      ;;',
  ]);
  return `# bash completion for ${PROGRAM}. Load: source <(${PROGRAM} completion bash)
_inference_provider() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}"
  local command="\${COMP_WORDS[1]}" first=2 options= choices= files= values=
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W ${quote([...firstWords(table).map(([word]) => word), '--help', '--version'].join(' '))} -- "$current"))
    return
  fi
  case "$command" in
${groups
  .map(
    (group) => `    ${group})
      if ((COMP_CWORD == 2)) && [[ $current != -* ]]; then
        COMPREPLY=($(compgen -W ${quote(
          membersOf(group, table)
            .map(([word]) => word)
            .join(' '),
        )} -- "$current"))
        return
      fi
      if [[ \${COMP_WORDS[2]} != -* ]]; then command="$command \${COMP_WORDS[2]}"; first=3; fi
      ;;`,
  )
  .join('\n')}
  esac
  case "$command" in
${cases.join('\n')}
  esac
  case "$values" in
    path) COMPREPLY=($(compgen -f -- "$current")); compopt -o filenames 2>/dev/null; return ;;
    text) return ;;
    ?*) COMPREPLY=($(compgen -W "$values" -- "$current")); return ;;
  esac
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  elif [[ -n $choices ]] && ((COMP_CWORD == first)); then
    COMPREPLY=($(compgen -W "$choices" -- "$current"))
  elif [[ -n $files ]]; then
    COMPREPLY=($(compgen -f -- "$current")); compopt -o filenames 2>/dev/null
  else
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  fi
}
complete -F _inference_provider ${PROGRAM}
`;
}

/** Sets `values` if the previous word is an option with a value. */
function valueCases(options: readonly CompletedOption[]): string[] {
  const taking = options.filter(({ value }) => value !== 'none');
  if (taking.length === 0) return [];
  const lines = taking.map(
    ({ name, value, choices }) => `        ${name}) values=${quote(value === 'choices' ? choices.join(' ') : value)} ;;`,
  );
  return ['      case "$previous" in', ...lines, '      esac'];
}

function zshScript(table: readonly CompletedCommand[]): string {
  const described = (words: readonly (readonly [string, string])[]): string =>
    words.map(([word, summary]) => quote(`${word.replaceAll(':', '\\:')}:${summary}`)).join(' ');
  const commandCase = ({ name, options, choices, takesFile }: CompletedCommand): string => {
    const rest = takesFile ? "'*:file:_files'" : choices.length > 0 ? quote(`1:argument:(${choices.join(' ')})`) : "'*: :'";
    return `    ${quote(name)}) _arguments ${options.map((option) => quote(zshOption(option))).join(' ')} ${rest} ;;`;
  };
  return `#compdef ${PROGRAM}
# zsh completion for ${PROGRAM}. Load: source <(${PROGRAM} completion zsh)
_inference_provider() {
  local command="\${words[2]}"
  if ((CURRENT == 2)); then
    local -a commands=(${described(firstWords(table))})
    _describe command commands
    return
  fi
  case "$command" in
${groupsOf(table)
  .map(
    (group) => `    ${group})
      if ((CURRENT == 3)) && [[ \${words[3]} != -* ]]; then
        local -a members=(${described(membersOf(group, table))})
        _describe command members
        return
      fi
      if [[ \${words[3]} != -* ]]; then command="$command \${words[3]}"; shift words; ((CURRENT--)); fi
      ;;`,
  )
  .join('\n')}
  esac
  shift words
  ((CURRENT--))
  case "$command" in
${table.map(commandCase).join('\n')}
  esac
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }
compdef _inference_provider ${PROGRAM}
`;
}

function zshOption({ name, value, choices }: CompletedOption): string {
  if (value === 'none') return name;
  return `${name}:${name.slice(2)}:${value === 'choices' ? `(${choices.join(' ')})` : value === 'path' ? '_files' : ' '}`;
}

function fishScript(table: readonly CompletedCommand[]): string {
  const groups = groupsOf(table);
  const line = (condition: string, rest: string): string => `complete -c ${PROGRAM} -n ${quoteForFish(condition)} ${rest}`;
  const lines = table.flatMap(({ name, options, choices, takesFile }) => {
    const [first = '', second] = name.split(' ');
    const others = second === undefined && groups.includes(first) ? membersOf(first, table).map(([word]) => word) : [];
    const condition = [
      `__fish_seen_subcommand_from ${first}`,
      ...(second === undefined ? [] : [`__fish_seen_subcommand_from ${second}`]),
      ...(others.length === 0 ? [] : [`not __fish_seen_subcommand_from ${others.join(' ')}`]),
    ].join('; and ');
    return [
      ...options.map((option) => line(condition, fishOption(option))),
      ...(choices.length === 0 ? [] : [line(condition, `-a ${quoteForFish(choices.join(' '))}`)]),
      ...(takesFile ? [line(condition, '-F')] : []),
    ];
  });
  return [
    `# fish completion for ${PROGRAM}. Load: ${PROGRAM} completion fish | source`,
    `complete -c ${PROGRAM} -f`,
    ...firstWords(table).map(([word, summary]) => line('__fish_use_subcommand', `-a ${word} -d ${quoteForFish(summary)}`)),
    ...groups.flatMap((group) => {
      const members = membersOf(group, table);
      const none = `__fish_seen_subcommand_from ${group}; and not __fish_seen_subcommand_from ${members.map(([word]) => word).join(' ')}`;
      return members.map(([word, summary]) => line(none, `-a ${word} -d ${quoteForFish(summary)}`));
    }),
    ...lines,
    '',
  ].join('\n');
}

function fishOption({ name, value, choices }: CompletedOption): string {
  const long = `-l ${name.slice(2)}`;
  if (value === 'none') return long;
  return `${long} -r${value === 'choices' ? ` -f -a ${quoteForFish(choices.join(' '))}` : value === 'path' ? ' -F' : ' -f'}`;
}

function quoteForFish(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
