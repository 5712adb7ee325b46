/**
 * `seamark playground` (`npm start`): a world on this machine, a tour on it, and the world stays until Ctrl-C, which removes
 * everything. Nothing leaves the machine. The subcommands break and mend the running world from a second terminal.
 * `--script FILE` plays a scenario of a fleet instead, and fails when one of its expectations is not met.
 */
import { Command } from 'commander'
import type { Io } from '../../command.ts'
import { addFaultCommands } from './fault-commands.ts'
import { play, playScript } from './play.ts'

interface Flags {
  once?: boolean
  script?: string
  dataDir?: string
  fresh?: boolean
}

export function build(io: Io): Command {
  const command = new Command()
    .description(
      'a hub, three clusters, DNS, the manager and its page on this machine, with only Node; they stay until Ctrl-C',
    )
    .option('--once', 'play the tour and exit: 0, or 4 when an answer did not come in time')
    .option('--script <file>', 'play a scenario of a fleet and exit: 0, or 4 when an expectation is not met in time')
    .option('--data-dir <folder>', 'keep the world in this folder over a restart (default: in memory)')
    .option('--fresh', 'empty the folder of --data-dir first')
    .action(async ({ script, ...flags }: Flags) => (script === undefined ? play(io, flags) : playScript(io, script)))
  addFaultCommands(command, io)
  return command
}
