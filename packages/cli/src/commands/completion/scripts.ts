/**
 * Completion scripts for bash, zsh, fish and kubectl. Each is static: pressing TAB starts no process. They hold the commands and flags
 * of the version that printed them, so print them again after an upgrade.
 */
import type { CompletedCommand, CompletedFlag } from './command-tree.ts'

export type Shell = 'bash' | 'zsh' | 'fish' | 'kubectl'

export function completionScript(shell: Shell, commands: readonly CompletedCommand[]): string {
  switch (shell) {
    case 'bash':
      return bashScript(commands)
    case 'zsh':
      return zshScript(commands)
    case 'fish':
      return fishScript(commands)
    case 'kubectl':
      return kubectlScript(commands)
  }
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}

const pathOf = ({ path }: CompletedCommand): string => path.join(' ')

/** `case` patterns of the flags that take a value, and what to offer for it. */
function valueCases(commands: readonly CompletedCommand[], offer: (flag: CompletedFlag) => string): string[] {
  return commands.flatMap((command) =>
    command.flags
      .filter(({ value }) => value !== 'none')
      .map((flag) => {
        const patterns = flag.names.map((name) => quoted(`${pathOf(command)} ${name}`)).join('|')
        return `    ${patterns}) ${offer(flag)} ;;`
      }),
  )
}

/** The leading words that are commands; shared by bash and zsh, whose `case` is the same. */
function pathCases(commands: readonly CompletedCommand[]): string {
  return commands
    .filter(({ path }) => path.length > 0)
    .map((command) => quoted(pathOf(command)))
    .join('|')
}

function bashScript(commands: readonly CompletedCommand[]): string {
  const offerValue = ({ value }: CompletedFlag): string => {
    if (value === 'file') return `COMPREPLY=($(compgen -f -- "$cur")); return`
    return typeof value === 'string'
      ? 'return'
      : `COMPREPLY=($(compgen -W ${quoted(value.join(' '))} -- "$cur")); return`
  }
  const words = commands.map((command) => {
    const flags = command.flags.flatMap(({ names }) => names).join(' ')
    const next = command.words.map(({ word }) => word).join(' ')
    return `    ${quoted(pathOf(command))}) words=${quoted(next)} flags=${quoted(flags)} ;;`
  })
  return `# bash completion of seamark: source <(seamark completion bash)
_seamark() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} path= words= flags= next i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    next="\${path:+$path }\${COMP_WORDS[i]}"
    case "$next" in
      ${pathCases(commands)}) path=$next ;;
      *) break ;;
    esac
  done
  case "$path $prev" in
${valueCases(commands, offerValue).join('\n')}
  esac
  case "$path" in
${words.join('\n')}
  esac
  if [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$cur"))
  elif [[ -n $words ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
  else
    COMPREPLY=($(compgen -f -- "$cur"))
  fi
}
complete -o filenames -F _seamark seamark
`
}

/**
 * kubectl runs `kubectl_complete-seamark WORD… LAST` for `kubectl seamark`. It prints what may stand in place of the last word, and a
 * directive of Cobra: 4, no files; 0, files when nothing is offered.
 */
function kubectlScript(commands: readonly CompletedCommand[]): string {
  return `#!/usr/bin/env bash
${bashScript(commands).replace(/^complete .*\n/m, '')}
COMP_WORDS=(seamark "$@") COMP_CWORD=$#
compgen() { [[ $1 == -f ]] || builtin compgen "$@"; }
_seamark
if ((\${#COMPREPLY[@]})); then printf '%s\\n' "\${COMPREPLY[@]}" :4; else echo :0; fi
`
}

function zshScript(commands: readonly CompletedCommand[]): string {
  const entry = (word: string, description: string): string =>
    quoted(`${word}:${description.replaceAll(':', String.raw`\:`)}`)
  const offerValue = ({ value }: CompletedFlag): string => {
    if (value === 'file') return '_files; return'
    return typeof value === 'string' ? 'return' : `compadd -- ${value.map(quoted).join(' ')}; return`
  }
  const cases = commands.map((command) => {
    const words = command.words.map(({ word, description }) => entry(word, description)).join(' ')
    const flags = command.flags
      .flatMap(({ names, description }) => names.map((name) => entry(name, description)))
      .join(' ')
    return `    ${quoted(pathOf(command))}) items=(${words}); flags=(${flags}) ;;`
  })
  return `#compdef seamark
# zsh completion of seamark: seamark completion zsh > "\${fpath[1]}/_seamark"
_seamark() {
  local cur=\${words[CURRENT]} prev=\${words[CURRENT-1]} command_path= next i
  local -a items flags
  for ((i = 2; i < CURRENT; i++)); do
    next="\${command_path:+$command_path }\${words[i]}"
    case "$next" in
      ${pathCases(commands)}) command_path=$next ;;
      *) break ;;
    esac
  done
  case "$command_path $prev" in
${valueCases(commands, offerValue).join('\n')}
  esac
  case "$command_path" in
${cases.join('\n')}
  esac
  if [[ $cur == -* ]]; then
    _describe -o flag flags
  elif (( \${#items} )); then
    _describe command items
  else
    _files
  fi
}
if [[ $funcstack[1] == _seamark ]]; then _seamark "$@"; else compdef _seamark seamark; fi
`
}

function fishScript(commands: readonly CompletedCommand[]): string {
  const lines = commands.flatMap((command) => {
    const at = `-n ${quoted(`__seamark_at ${quotedPath(command)}`)}`
    return [
      ...command.words.map(
        ({ word, description }) => `complete -c seamark -f ${at} -a ${quoted(word)} -d ${fishQuoted(description)}`,
      ),
      ...command.flags.map((flag) => `complete -c seamark ${at} ${fishFlag(flag)}`),
    ]
  })
  const known = commands.filter(({ path }) => path.length > 0).map((command) => fishQuoted(pathOf(command)))
  return `# fish completion of seamark: seamark completion fish > ~/.config/fish/completions/seamark.fish
function __seamark_path
  set -l known ${known.join(' ')}
  set -l found
  for word in (commandline -opc)[2..-1]
    set -l next (string join ' ' -- $found $word)
    contains -- "$next" $known; or break
    set found $found $word
  end
  string join ' ' -- $found
end
function __seamark_at
  test (string join ' ' -- (__seamark_path)) = "$argv[1]"
end
${lines.join('\n')}
`
}

function quotedPath(command: CompletedCommand): string {
  return `"${pathOf(command)}"`
}

function fishFlag({ names, description, value }: CompletedFlag): string {
  const parts = names.map((name) => (name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`))
  if (value === 'file') parts.push('-r')
  else if (value === 'other') parts.push('-x')
  else if (value !== 'none') parts.push('-x', '-a', fishQuoted(value.join(' ')))
  return `${parts.join(' ')} -d ${fishQuoted(description)}`
}

/** In single quotes fish has the escapes \\\\ and \\' only. */
function fishQuoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", String.raw`\'`)}'`
}
