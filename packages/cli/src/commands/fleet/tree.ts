/** `seamark tree HOST`: root → leaves → addresses, with a word of state at each. */
import { printTree, traceHost } from '@seamark/operator'
import { Command } from 'commander'
import { CommandError, type Io } from '../../command.ts'
import { addKubeFlags, type KubeFlags, openCluster } from '../../flags/kube-flags.ts'
import { addOutputFlag, printValue } from '../../output-form.ts'

interface Flags extends KubeFlags {
  output: 'text' | 'json' | 'yaml'
}

export function build(io: Io): Command {
  const command = addKubeFlags(new Command().description('a global host: root, leaves, addresses and their states'))
  addOutputFlag(command, ['text', 'json', 'yaml'], 'text')
  return command.argument('<host>').action(async (host: string, flags: Flags) => {
    const cluster = await openCluster(io, flags)
    try {
      const trace = await traceHost(cluster.client, host, io.signal)
      if (trace === undefined) throw new CommandError(`no root of the fleet names ${host}`)
      const { output } = flags
      io.stdout.write(output === 'text' ? printTree(trace) : printValue(output, trace))
    } finally {
      await cluster.close()
    }
  })
}
