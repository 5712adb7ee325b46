/** `seamark tree HOST`: root → leaves → addresses, with a word of state at each. */
import { printTree, traceHost } from '@seamark/operator'
import { Command } from 'commander'
import { CommandError, type Io } from '../../command.ts'
import { addKubeFlags, type KubeFlags, openCluster } from '../../flags/kube-flags.ts'

export function build(io: Io): Command {
  const command = addKubeFlags(new Command().description('a global host: root, leaves, addresses and their states'))
  return command.argument('<host>').action(async (host: string, flags: KubeFlags) => {
    const cluster = await openCluster(io, flags)
    try {
      const trace = await traceHost(cluster.client, host, io.signal)
      if (trace === undefined) throw new CommandError(`no root of the fleet names ${host}`)
      io.stdout.write(printTree(trace))
    } finally {
      await cluster.close()
    }
  })
}
