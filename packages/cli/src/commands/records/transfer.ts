/** `seamark transfer`: from us to another owner or cluster, or from ExternalDNS to us alone. Values stay. */
import { planExclusive, planTransfer } from '@seamark/operator'
import { Command } from 'commander'
import { CommandError, EXIT, type Io } from '../../command.ts'
import { addHandOverFlags, handOver, type HandOverFlags } from './hand-over-flags.ts'

interface Flags extends HandOverFlags {
  to?: string
  toCluster?: string
  from?: string
}

export function build(io: Io): Command {
  const command = new Command()
    .description('hand records to another owner, or take adopted ones for ourselves alone')
    .argument('[names...]', 'only these names')
    .option('--to <owner>', 'the new owner id')
    .option('--to-cluster <uid>', 'UID of kube-system in the new cluster; with --to')
    .option(
      '--from <external-dns/OWNER|dnslb/IDENTITY>',
      'remove the entries of that owner from records adopted before',
    )
  addHandOverFlags(command)
  return command.action(async (names: string[], flags: Flags & Record<string, unknown>) => {
    const { to, toCluster, from } = flags
    if ((to === undefined) === (from === undefined)) throw new CommandError('name either --to or --from', EXIT.usage)
    if (to !== undefined && toCluster === undefined) throw new CommandError('--to needs --to-cluster', EXIT.usage)
    if (from !== undefined && !/^(external-dns|dnslb)\/.+/.test(from))
      throw new CommandError(`--from ${from}: must be external-dns/OWNER or dnslb/IDENTITY`, EXIT.usage)
    await handOver(io, flags, names, (input) =>
      to !== undefined && toCluster !== undefined
        ? planTransfer(input, { owner: to, cluster: toCluster })
        : planExclusive(input, from ?? ''),
    )
  })
}
