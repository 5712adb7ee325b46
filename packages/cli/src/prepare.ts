/** What every command has, without saying so itself: its full name, examples in its help, and `--debug`. */
import type { Command } from 'commander'
import { EXAMPLES } from './verb-examples.ts'

/** @param path as typed after `seamark` */
export function prepare(command: Command, path: string): Command {
  command.name(`seamark ${path}`)
  addToEach(command, path)
  return command
}

function addToEach(command: Command, path: string): void {
  if (!command.options.some(({ long }) => long === '--debug'))
    command.addOption(command.createOption('--debug', 'print where it failed, too').helpGroup('Options:'))
  const examples = EXAMPLES[path] ?? []
  if (examples.length > 0) {
    const lines = examples.map((example) => `  seamark ${example}\n`).join('')
    command.addHelpText('after', `\n${examples.length === 1 ? 'Example' : 'Examples'}:\n${lines}`)
  }
  for (const each of command.commands) addToEach(each, `${path} ${each.name()}`)
}
