/** `seamark adopt`: takes ownership of records by writing markers; their values stay. Without --apply it only prints the plan. */
import { planAdoption } from '@seamark/operator'
import { Command } from 'commander'
import { CommandError, EXIT, type Io } from '../../command.ts'
import { addHandOverFlags, handOver, type HandOverFlags } from './hand-over-flags.ts'

interface Flags extends HandOverFlags {
  from: string
}

export function build(io: Io): Command {
  const command = new Command()
    .description(
      'take ownership of records of ExternalDNS, of dnslb-controller-manager, or of records without an owner; writes markers only',
    )
    .argument('[names...]', 'only these names')
    .requiredOption('--from <external-dns/OWNER|dnslb/IDENTITY|unmarked>', 'whose records')
  addHandOverFlags(command)
  return command.action(async (names: string[], flags: Flags & Record<string, unknown>) => {
    if (flags.from !== 'unmarked' && !/^(external-dns|dnslb)\/.+/.test(flags.from)) {
      throw new CommandError(`--from ${flags.from}: must be external-dns/OWNER, dnslb/IDENTITY or unmarked`, EXIT.usage)
    }
    if (flags.from === 'unmarked' && names.length === 0) {
      throw new CommandError('name the records to adopt: with --from unmarked no name is chosen by default', EXIT.usage)
    }
    await handOver(io, flags, names, (input) => planAdoption(input, flags.from))
  })
}
