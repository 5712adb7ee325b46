/** `seamark release`: ends the ownership of records: removes our markers; values and ExternalDNS' entries are unchanged. */
import { planRelease } from '@seamark/operator'
import { Command } from 'commander'
import { CommandError, EXIT, type Io } from '../../command.ts'
import { addHandOverFlags, handOver, type HandOverFlags } from './hand-over-flags.ts'

interface Flags extends HandOverFlags {
  to?: string
}

export function build(io: Io): Command {
  const command = new Command()
    .description('give records up; removes our markers only')
    .argument('[names...]', 'only these names')
    .option('--to <external-dns/OWNER>', 'also write an entry of ExternalDNS where there is none')
  addHandOverFlags(command)
  return command.action(async (names: string[], flags: Flags & Record<string, unknown>) => {
    const owner = flags.to === undefined ? undefined : /^external-dns\/(.+)$/.exec(flags.to)?.[1]
    if (flags.to !== undefined && owner === undefined)
      throw new CommandError(`--to ${flags.to}: must be external-dns/OWNER`, EXIT.usage)
    await handOver(io, flags, names, (input, registry) =>
      planRelease(input, owner === undefined ? undefined : { owner, registry }),
    )
  })
}
