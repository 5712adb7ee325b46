/** The verbs of `seamark`, in alphabetical order. A verb's file is loaded only when it is called. */
import type { Build } from './command.ts'

export interface Verb {
  /** As typed: one word, or two for a group (`dns serve`). */
  readonly name: string
  readonly summary: string
  readonly load: () => Promise<{ build: Build }>
}

export const VERBS: readonly Verb[] = [
  { name: 'dig', summary: 'ask DNS servers, in the syntax of dig', load: async () => import('./commands/dig.ts') },
  {
    name: 'dns serve',
    summary: 'serve zone files as an authoritative DNS server',
    load: async () => import('./commands/dns-serve.ts'),
  },
  { name: 'version', summary: 'print the version', load: async () => import('./commands/version.ts') },
]

export function findVerb(verbs: readonly Verb[], argv: readonly string[]): { verb: Verb; rest: string[] } | undefined {
  for (const words of [2, 1]) {
    const name = argv.slice(0, words).join(' ')
    const verb = verbs.find((candidate) => candidate.name === name)
    if (verb !== undefined) return { verb, rest: argv.slice(words) }
  }
  return undefined
}
