/** What shell completion offers, read from the commands themselves: every command path, its flags and their values. */
import type { Command, Option } from 'commander'
import type { Io } from '../../command.ts'
import { VERBS } from '../../verbs.ts'

export interface CompletedFlag {
  /** `--output`, `-o` */
  readonly names: readonly string[]
  readonly description: string
  readonly value: 'none' | 'file' | 'other' | readonly string[]
}

export interface CompletedCommand {
  /** `['dns', 'serve']`; empty for `seamark` itself. */
  readonly path: readonly string[]
  readonly description: string
  /** Words that may follow: subcommands, with what they do. */
  readonly words: readonly { readonly word: string; readonly description: string }[]
  readonly flags: readonly CompletedFlag[]
}

/** `seamark` first, then each verb, group and subcommand. */
export async function readCommandTree(io: Io): Promise<CompletedCommand[]> {
  const commands: CompletedCommand[] = []
  for (const verb of VERBS) {
    const { build } = await verb.load()
    addCommand(commands, verb.name.split(' '), verb.summary, build(io))
  }
  const groups = new Set(VERBS.filter(({ name }) => name.includes(' ')).map(({ name }) => name.split(' ')[0] ?? ''))
  for (const group of groups) {
    const words = VERBS.filter(({ name }) => name.startsWith(`${group} `)).map(({ name, summary }) => ({
      word: name.split(' ')[1] ?? '',
      description: summary,
    }))
    commands.push({
      path: [group],
      description: words.map(({ description }) => description).join('; '),
      words,
      flags: [],
    })
  }
  const first = commands
    .filter(({ path }) => path.length === 1)
    .map(({ path, description }) => ({ word: path[0] ?? '', description }))
    .toSorted((a, b) => (a.word < b.word ? -1 : 1))
  const help = { word: 'help', description: 'the help of a verb' }
  return [
    { path: [], description: '', words: [...first, help], flags: [HELP] },
    { path: ['help'], description: help.description, words: first, flags: [] },
    ...commands,
  ]
}

const HELP: CompletedFlag = { names: ['--help', '-h'], description: 'display help', value: 'none' }

function addCommand(all: CompletedCommand[], path: readonly string[], description: string, command: Command): void {
  const words = command.commands.map((each) => ({ word: each.name(), description: each.description() }))
  all.push({
    path,
    description,
    words: words.length > 0 ? words : (command.registeredArguments[0]?.argChoices ?? []).map(toWord),
    flags: [...command.options.filter((option) => isOffered(option)).map(toFlag), HELP],
  })
  for (const each of command.commands) addCommand(all, [...path, each.name()], each.description(), each)
}

function toWord(word: string): { word: string; description: string } {
  return { word, description: word }
}

/** Flags that are accepted for compatibility only, and settings that the help does not list, are not offered. */
function isOffered({ hidden, long }: Option): boolean {
  return !hidden && long !== undefined && long !== null
}

function toFlag({ long, short, description, argChoices, required, optional, flags }: Option): CompletedFlag {
  const names = [long, short].filter((name) => name !== undefined && name !== null)
  if (!required && !optional) return { names, description, value: 'none' }
  if (argChoices !== undefined) return { names, description, value: argChoices }
  const placeholder = /[<[]([^>\]]*)[>\]]/.exec(flags)?.[1] ?? ''
  if (/^(?:file|path|folder)/.test(placeholder)) return { names, description, value: 'file' }
  if (placeholder.includes('|')) return { names, description, value: placeholder.split('|') }
  return { names, description, value: 'other' }
}
