/** `seamark version`: the product version and the Node.js version it runs on. */
import { Command } from 'commander'
import type { Io } from '../command.ts'
import { addOutputFlag, printValue } from '../output-form.ts'
import { VERSION } from '../version.ts'

export function build(io: Io): Command {
  const command = new Command().description('print the version')
  addOutputFlag(command, ['text', 'json', 'yaml'], 'text')
  return command.action(({ output }: { output: 'text' | 'json' | 'yaml' }) => {
    const node = process.version
    io.stdout.write(
      output === 'text' ? `seamark ${VERSION} (node ${node})\n` : printValue(output, { version: VERSION, node }),
    )
  })
}
