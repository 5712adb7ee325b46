/** `seamark tree HOST`: root → leaves → addresses, with a word of state at each, and the verdict of `seamark explain`. */
import { printTree, traceHost } from '@seamark/operator'
import { Command } from 'commander'
import { CommandError, EXIT, type Io } from '../../command.ts'
import { addKubeFlags, DEFAULT_NAMESPACE, type KubeFlags, openCluster } from '../../flags/kube-flags.ts'
import { addSettingFlags, configPath, readConfig } from '../../flags/setting-flags.ts'
import { addOutputFlag, printValue } from '../../output-form.ts'
import { explainHost, parseDnsServer, readHost } from './host-explanation.ts'

interface Flags extends KubeFlags {
  config?: string
  namespace?: string
  server?: string
  output: 'text' | 'json' | 'yaml'
}

export function build(io: Io): Command {
  const command = addKubeFlags(new Command().description('a global host: root, leaves, addresses and their states'))
    .option('--config <file>', 'ManagerConfiguration file of the manager [SEAMARK_CONFIG]')
    .option('--server <address[:port]>', 'DNS server to ask; else those of the zone')
    .option(
      '-n, --namespace <name>',
      `namespace of the manager, where its Lease is; else that of the configuration, else ${DEFAULT_NAMESPACE}`,
    )
  addOutputFlag(command, ['text', 'json', 'yaml'], 'text')
  addSettingFlags(command, { isListed: false })
  return command.argument('<host>').action(async (argument: string, flags: Flags & Record<string, unknown>) => {
    const { server, output } = flags
    const host = readHost(argument)
    if (server !== undefined) parseDnsServer(server)
    const { config } = await readConfig(io, flags)
    const cluster = await openCluster(io, flags)
    try {
      const stored = await traceHost(cluster.client, host, io.signal)
      if (stored === undefined) throw new CommandError(`no root of the fleet names ${host}`)
      const isConfigured = configPath(io, flags) !== undefined
      const question = { host, cluster, config, isConfigured, server, trace: stored }
      const { explanation, trace = stored } = await explainHost(io, question)
      const { verdict } = explanation
      io.stdout.write(output === 'text' ? printTree(trace, verdict.text) : printValue(output, { ...trace, verdict }))
      io.exit(verdict.state === 'as it should be' ? EXIT.ok : EXIT.changes)
    } finally {
      await cluster.close()
    }
  })
}
