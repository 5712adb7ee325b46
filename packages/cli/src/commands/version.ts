/** `seamark version`: the product version and the Node it runs on. */
import { Command } from 'commander'
import type { Io } from '../command.ts'
import { VERSION } from '../version.ts'

export function build(io: Io): Command {
  return new Command().description('print the version').action(() => {
    io.stdout.write(`seamark ${VERSION} (node ${process.version})\n`)
  })
}
