/**
 * `seamark explain HOST`: from the source to the answer, hop by hop, and the first one that is broken. Read-only. With a URL
 * the last hop is the route: which rule of which object takes the request in the gateway.
 * With providers in the configuration the plan and the records of the zone are read as the manager reads them.
 */
import { isIP } from 'node:net'
import { createDnsClient, groupRecords, type ServerAddress } from '@seamark/dns'
import { type Cluster, ConfigMap, messageOf } from '@seamark/kube'
import {
  type AnswerFact,
  CONFIGURATION_OBJECT,
  explain,
  type ExplainDeps,
  type Explanation,
  fleetFacts,
  gatherFacts,
  isPausedBy,
  type LoadedConfig,
  PlanReader,
  processGrants,
  publishOptions,
  REASONS,
  recordsInUse,
  RecordsError,
  traceHost,
  zoneName,
} from '@seamark/operator'
import { Command } from 'commander'
import { CommandError, EXIT, type Io } from '../../command.ts'
import { addKubeFlags, DEFAULT_NAMESPACE, type KubeFlags, openCluster } from '../../flags/kube-flags.ts'
import { addOutputFlag, printValue } from '../../output-form.ts'
import { parseQuestion, printTrace, traceInCluster } from './request-hop.ts'
import { addSettingFlags, readConfig } from '../../flags/setting-flags.ts'

interface Flags extends KubeFlags {
  config?: string
  namespace?: string
  server?: string
  output: 'text' | 'wide' | 'json' | 'yaml'
  header: string[]
  request: string
}

export function build(io: Io): Command {
  const command = addKubeFlags(new Command().description('why a host answers as it does, hop by hop'))
    .argument('<host or URL>', 'HOST, or https://HOST/PATH for a request')
    .option('-H, --header <name: value>', 'header field of the request; may be repeated', collect, [])
    .option('-X, --request <method>', 'method of the request', 'GET')
    .option('--config <file>', 'ManagerConfiguration file of the manager [SEAMARK_CONFIG]')
    .option('--server <address[:port]>', 'DNS server to ask')
    .option(
      '-n, --namespace <name>',
      `namespace of the manager, where its switches and guard state are; else that of the configuration, else ${DEFAULT_NAMESPACE}`,
    )
  addOutputFlag(command, ['text', 'wide', 'json', 'yaml'], 'text')
  addSettingFlags(command, { isListed: false })
  return command.action(async (argument: string, flags: Flags & Record<string, unknown>) => {
    const question = parseQuestion(argument, flags.request.toUpperCase(), flags.header)
    const host = question === undefined ? argument : hostOf(question)
    if (flags.server !== undefined) parseDnsServer(flags.server)
    const { config } = await readConfig(io, flags)
    const cluster = await openCluster(io, flags)
    const { server } = flags
    try {
      const answer =
        server === undefined ? undefined : async (name: string, signal: AbortSignal) => ask(server, name, signal)
      const hasProviders = recordsInUse(config).providers.length > 0 || config.dns.listen.length > 0
      const plan = planReader(io, cluster, config, config.namespace || DEFAULT_NAMESPACE)
      const facts = await gatherFacts(
        host,
        {
          cluster,
          options: publishOptions(config.publish, processGrants(config.grants, config.namespace || DEFAULT_NAMESPACE)),
          isPublishOn: config.publish.enabled,
          ...(hasProviders && { plan }),
          ...(answer !== undefined && { answer }),
          manager: async (signal) => ({
            isPaused: config.pause || (await readPause(cluster, config.namespace || DEFAULT_NAMESPACE, signal)),
            mode: config.mode,
          }),
        },
        io.signal,
      )
      const trace = await traceHost(cluster.client, host, io.signal).catch(() => undefined)
      const request = question === undefined ? undefined : await traceInCluster(cluster.client, question, io.signal)
      const explanation = explain({
        ...facts,
        ...(trace !== undefined && fleetFacts(trace)),
        ...(hasOnlyOwnZones(config) && { ownZones: config.dns.zones.map(zoneName) }),
        ...(request !== undefined && { route: { isServed: request.outcome !== 'none', text: request.text } }),
      })
      const { output } = flags
      io.stdout.write(
        output === 'json' || output === 'yaml'
          ? printValue(output, { ...explanation, ...(request !== undefined && { request }) })
          : print(explanation, output === 'wide') +
              (request === undefined ? '' : printTrace(request, output === 'wide')),
      )
      io.exit(explanation.verdict.state === 'as it should be' ? EXIT.ok : EXIT.changes)
    } finally {
      await cluster.close()
    }
  })
}

function collect(value: string, before: readonly string[]): string[] {
  return [...before, value]
}

function hostOf({ authority }: { readonly authority: string }): string {
  return authority.replace(/:\d+$/, '')
}

/** The manager's own view of a name. */
function planReader(
  io: Io,
  { client }: Cluster,
  config: LoadedConfig['config'],
  namespace: string,
): NonNullable<ExplainDeps['plan']> {
  const reader = new PlanReader({
    client,
    namespace,
    records: recordsInUse(config),
    dns: config.dns,
    mode: config.mode,
    isPaused: async (signal) => config.pause || readPause({ client }, namespace, signal),
    safety: config.safety,
    grants: processGrants(config.grants, namespace),
    env: io.env,
  })
  return async (host, targets, signal) => {
    try {
      return await reader.ofName(host, targets, signal)
    } catch (error) {
      if (error instanceof RecordsError) throw new CommandError(error.message, EXIT.usage)
      throw error
    }
  }
}

/** Nothing of this configuration answers other names. */
function hasOnlyOwnZones(config: LoadedConfig['config']): boolean {
  const { dns, fleet } = config
  return dns.listen.length > 0 && recordsInUse(config).providers.length === 0 && !fleet.answeredElsewhere
}

async function readPause(
  { client }: Pick<Cluster, 'client'>,
  namespace: string,
  signal: AbortSignal,
): Promise<boolean> {
  const switches = await client.find(ConfigMap, `${namespace}/${CONFIGURATION_OBJECT}`, { signal })
  return isPausedBy(switches?.metadata.annotations)
}

/** Throws CommandError when the flag --server is no address. */
function parseDnsServer(server: string): ServerAddress {
  const match = /^(?:\[(?<v6>[^\]]+)\]|(?<v4>[^:]+))(?::(?<port>\d+))?$/.exec(server)
  const host = match?.groups?.['v6'] ?? match?.groups?.['v4'] ?? server
  if (isIP(host) === 0) throw new CommandError(`--server ${server} is not ADDRESS or ADDRESS:PORT`, EXIT.usage)
  return { address: host, port: Number(match?.groups?.['port'] ?? 53) }
}

async function ask(server: string, name: string, signal: AbortSignal): Promise<AnswerFact> {
  const at = parseDnsServer(server)
  const client = createDnsClient()
  try {
    const replies = await Promise.all(
      ['A', 'AAAA'].map(async (type) => client.query({ server: at, name, type, signal })),
    )
    const sets = replies.flatMap((reply) => groupRecords(reply.message.answers))
    const targets = sets
      .filter((set) => ['A', 'AAAA', 'CNAME'].includes(set.type))
      .flatMap((set) => set.values.map((value) => value.replace(/\.$/, '')))
    return { server, targets: [...new Set(targets)] }
  } catch (error) {
    return { server, targets: [], fault: messageOf(error) }
  } finally {
    await client.close()
  }
}

const SIGNS = { ok: '✔', degraded: '!', broken: '✗', skipped: '–' } as const

/** `isWide` adds what each reason code means. */
function print({ hops, verdict }: Explanation, isWide: boolean): string {
  const lines = hops.map((hop, index) => {
    const reason = hop.reason === undefined ? '' : `${hop.reason}: `
    const meaning = isWide && hop.reason !== undefined ? `${' '.repeat(18)}${REASONS[hop.reason]}\n` : ''
    return `${String(index + 1).padStart(2)} ${hop.name.padEnd(12)} ${SIGNS[hop.state]} ${reason}${hop.text}\n${meaning}`
  })
  return `${verdict.text}\n${lines.join('')}`
}
