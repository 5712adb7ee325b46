/**
 * A transcript is a file of commands and what they answered: `$ kubectl …`, its standard input on lines with `< `, the
 * exit code after `= `, lines of stdout as they are and lines of stderr with `! ` before them.
 *
 * Place in the flow: messages.txt was written by running its commands at a real kube-apiserver (`RECORD=1`); the suite
 * runs them again on every target and compares word for word.
 */
import type { Outcome } from './binaries.ts'

export interface Exchange {
  run: string
  stdin: string
  outcome: Outcome
}

export function parseTranscript(text: string): Exchange[] {
  return text
    .split(/^\$ kubectl /m)
    .slice(1)
    .map(parseExchange)
}

function parseExchange(text: string): Exchange {
  const [run = '', ...lines] = text.trimEnd().split('\n')
  const marked = (mark: string) => lines.filter((line) => line.startsWith(mark)).map((line) => line.slice(mark.length))
  const isPlain = (line: string) => !/^(?:[<!=] )/.test(line)
  return {
    run,
    stdin: marked('< ').join('\n'),
    outcome: {
      exit: Number(marked('= ')[0] ?? 0),
      stdout: lines.filter(isPlain).join('\n'),
      stderr: marked('! ').join('\n'),
    },
  }
}

export function formatTranscript(exchanges: readonly Exchange[]): string {
  return exchanges.map(formatExchange).join('\n')
}

function formatExchange({ run, stdin, outcome }: Exchange): string {
  const input = stdin === '' ? [] : [`< ${stdin}`]
  const stdout = outcome.stdout === '' ? [] : [outcome.stdout]
  const stderr = outcome.stderr === '' ? [] : outcome.stderr.split('\n').map((line) => `! ${line}`)
  return [`$ kubectl ${run}`, ...input, `= ${outcome.exit}`, ...stdout, ...stderr, ''].join('\n')
}
