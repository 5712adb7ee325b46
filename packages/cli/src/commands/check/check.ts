/**
 * `seamark check`: is this cluster ready for a manager with this configuration? It only reads; an update that is sent to a DNS
 * server has no change in it. Exit codes as `plan`: 0 ready, 2 something to do, 1 it could not be found out.
 */
import { partsOf, valueAt } from '@seamark/operator'
import { Command } from 'commander'
import { EXIT, type Io } from '../../command.ts'
import { addKubeFlags, DEFAULT_NAMESPACE, type KubeFlags, openCluster, ownNamespace } from '../../flags/kube-flags.ts'
import { addSettingFlags, readConfig } from '../../flags/setting-flags.ts'
import { addOutputFlag, printTable, printValue } from '../../output-form.ts'
import { checkApiServer } from './api-server.ts'
import { checkBeside } from './beside.ts'
import { checkDnsPorts } from './dns-ports.ts'
import { isOpen } from './finding.ts'
import { checkKinds } from './kinds.ts'
import { checkProviders } from './providers.ts'
import { checkRights } from './rights.ts'

interface Flags extends KubeFlags {
  config?: string
  namespace?: string
  output: 'text' | 'json' | 'yaml'
}

export function build(io: Io): Command {
  const command = addKubeFlags(new Command().description('is this cluster ready for it; changes nothing'))
    .option('--config <file>', 'ManagerConfiguration file [SEAMARK_CONFIG]')
    .option(
      '-n, --namespace <name>',
      `namespace of the manager; else that of the configuration, of the pod, else ${DEFAULT_NAMESPACE}`,
    )
  addOutputFlag(command, ['text', 'json', 'yaml'], 'text')
  addSettingFlags(command, { isListed: false })
  return command.action(async (flags: Flags & Record<string, unknown>) => check(io, flags))
}

async function check(io: Io, flags: Flags & Record<string, unknown>): Promise<void> {
  const { config } = await readConfig(io, flags)
  const namespace = (await ownNamespace(io, config.namespace)) ?? DEFAULT_NAMESPACE
  const parts = partsOf((setting) => valueAt(config, setting))
  const cluster = await openCluster(io, flags)
  try {
    const { client } = cluster
    const { signal } = io
    const findings = (
      await Promise.all([
        checkApiServer(client, signal),
        checkKinds(client, { parts, installsCrds: config.installCRDs }, signal),
        checkRights(client, { parts, namespace, config }, signal),
        checkProviders(client, config, io.env, signal),
        checkDnsPorts(config),
        checkBeside(client, config, signal),
      ])
    ).flat()
    const isReady = !findings.some(isOpen)
    const faults = findings.filter(({ state }) => state === 'fault').length
    const warnings = findings.filter(({ state }) => state === 'warning').length
    if (flags.output === 'text') {
      const rows = findings.map(({ state, topic, message }) => [state, topic, message])
      io.stdout.write(printTable(['STATE', 'TOPIC', 'WHAT'], rows))
    } else io.stdout.write(printValue(flags.output, { ready: faults === 0, faults, warnings, findings }))
    if (isReady) return
    const first = findings.find(({ state }) => state === (faults === 0 ? 'warning' : 'fault'))?.message ?? ''
    io.stderr.write(
      `${faults === 0 ? 'ready' : 'not ready'}: ${faults} faults, ${warnings} warnings; first: ${first}\n`,
    )
    io.exit(EXIT.changes)
  } finally {
    await cluster.close()
  }
}
